#include "detector_options.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

struct ClassifierOption {
  const char* option;
  const char* why;  // the detector takes none
  bool (*is_on)(const TrainOptions& options);
};

bool in_any_case(const TrainOptions&) { return true; }

constexpr const char* kOwnLoss = "a detector's loss is its own";
constexpr const char* kWhole = "a detector sees whole pictures";

constexpr ClassifierOption kOfClassifiers[] = {
    {"random-crop", kWhole, [](const TrainOptions& options) { return options.data.augment.random_crop; }},
    {"random-erasing", kWhole, [](const TrainOptions& options) { return options.data.augment.random_erasing > 0; }},
    {"reflect-pad", kWhole, [](const TrainOptions& options) { return options.data.augment.reflect_pad; }},
    {"fill-value", "a detector's pictures are surrounded by zeros", in_any_case},
    {"balanced-sampler", "a picture of a detector shows several classes",
     [](const TrainOptions& options) { return options.data.balanced_sampler; }},
    {"top-k", "a detector has an average precision in place of an accuracy",
     [](const TrainOptions& options) { return options.top_k > 0; }},
    {"loss", "the log of a detector has its loss in any case",
     [](const TrainOptions& options) { return !options.losses.empty(); }},
    {"label-smoothing", kOwnLoss, in_any_case},
    {"bce-loss", kOwnLoss, in_any_case},
    {"bce-target-thresh", kOwnLoss, in_any_case},
    {"focal-gamma", kOwnLoss, in_any_case},
    {"class-weights", kOwnLoss, in_any_case},
};

}  // namespace

void refuse_options_of_classifiers(const TrainOptions& options, const OptionSet& set) {
  if (!options.data.detection) return;
  for (const ClassifierOption& each : kOfClassifiers) {
    if (set.chosen(each.option) && each.is_on(options))
      throw UsageError(fmt::format("--{}: {}", each.option, each.why), "leave it out");
  }
}

}  // namespace dtrain::config
