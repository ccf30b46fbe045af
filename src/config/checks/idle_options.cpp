#include "idle_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "optimizer.hpp"

namespace dtrain::config {
namespace {

bool steps_rate(const TrainOptions& options) { return options.schedule.kind == nn::ScheduleKind::step; }
bool warms_up(const TrainOptions& options) { return options.schedule.warmup_epochs > 0; }
bool is_muon(const TrainOptions& options) { return options.optimizer.kind == nn::OptimizerKind::muon; }
bool cuts_windows(const TrainOptions& options) { return options.data.augment.random_resized_crop; }
bool is_rand_augment(const TrainOptions& options) {
  return options.data.augment.auto_augment == data::AutoAugment::rand;
}

// A file says all of its network itself.
bool builds_network(const TrainOptions& options) { return !options.network.is_file(); }
constexpr const char* kByName = "a --network by its name";

// The channels of a file's network, and of a checkpoint's, are not known yet.
bool may_have_colors(const TrainOptions& options) {
  return options.data.image.c == 3 || !builds_network(options) || options.resume || options.load_epoch ||
         options.pretrained.file;
}
constexpr const char* kColors = "images of 3 channels";

// A checkpoint that is resumed may have an average of its own.
bool may_have_average(const TrainOptions& options) { return options.optimizer.average > 0 || options.resume; }

struct Need {
  const char* option;
  const char* what;
  bool (*is_met)(const TrainOptions& options);
};

constexpr Need kNeeds[] = {
    {"num-layers", kByName, builds_network},
    {"backbone", kByName, builds_network},
    {"proposals", kByName, builds_network},
    {"anchor-size", kByName, builds_network},
    {"width", kByName, builds_network},
    {"batch-norm", kByName, builds_network},
    {"drop-path", kByName, builds_network},
    {"ema-warmup", "--ema", may_have_average},
    {"min-random-area", "--random-resized-crop", cuts_windows},
    {"max-random-area", "--random-resized-crop", cuts_windows},
    {"min-random-aspect-ratio", "--random-resized-crop", cuts_windows},
    {"alternate-mirror", "--random-mirror 1",
     [](const TrainOptions& options) { return options.data.augment.random_mirror; }},
    {"rand-augment-ops", "--auto-augment rand", is_rand_augment},
    {"rand-augment-magnitude", "--auto-augment rand", is_rand_augment},
    {"reflect-pad", "--pad-size",
     [](const TrainOptions& options) {
       return !options.data.augment.reflect_pad || options.data.augment.pad_size > 0;
     }},
    {"max-random-h", kColors,
     [](const TrainOptions& options) { return options.data.augment.max_random_h == 0 || may_have_colors(options); }},
    {"max-random-s", kColors,
     [](const TrainOptions& options) { return options.data.augment.max_random_s == 0 || may_have_colors(options); }},
    {"saturation", kColors,
     [](const TrainOptions& options) { return options.data.augment.saturation == 0 || may_have_colors(options); }},
    {"pca-noise", kColors,
     [](const TrainOptions& options) { return options.data.augment.pca_noise == 0 || may_have_colors(options); }},
    {"random-erasing-mode", "--random-erasing",
     [](const TrainOptions& options) { return options.data.augment.random_erasing > 0; }},
    {"lr-factor", "--lr-schedule step", steps_rate},
    {"lr-step-epochs", "--lr-schedule step", steps_rate},
    {"lr-final", "--lr-schedule cosine, one-cycle or poly",
     [](const TrainOptions& options) { return !steps_rate(options); }},
    {"lr-cycles", "--lr-schedule cosine",
     [](const TrainOptions& options) { return options.schedule.kind == nn::ScheduleKind::cosine; }},
    {"lr-rise", "--lr-schedule one-cycle",
     [](const TrainOptions& options) { return options.schedule.kind == nn::ScheduleKind::one_cycle; }},
    {"lr-power", "--lr-schedule poly",
     [](const TrainOptions& options) { return options.schedule.kind == nn::ScheduleKind::poly; }},
    {"warmup-strategy", "--warmup-epochs", warms_up},
    {"warmup-lr", "--warmup-epochs", warms_up},
    {"mom", "--optimizer sgd, nag, muon, lars or signum",
     [](const TrainOptions& options) { return takes_momentum(options.optimizer.kind); }},
    {"muon-steps", "--optimizer muon", is_muon},
    {"muon-coefficients", "--optimizer muon", is_muon},
    {"muon-rest-mom", "--optimizer muon", is_muon},
};

// Of the other schedules, check_schedule() refuses what the run does not reach.
void add_unreached(const TrainOptions& options, const OptionSet& set, std::vector<std::string>& lines) {
  const nn::Schedule& schedule = options.schedule;
  if (!steps_rate(options) || options.epochs == 0 || options.benchmark || options.test_io) return;
  const auto add = [&](const char* option, const char* other, const char* effect) {
    lines.push_back(fmt::format("--{} {} and --{} {}: {}", option, set.find(option)->show(), other,
                                set.find(other)->show(), effect));
  };
  const bool has_steps = !schedule.boundaries.empty() && set.chosen("lr-step-epochs");
  const bool meets_step = has_steps || (!schedule.boundaries.empty() && set.chosen("warmup-epochs"));
  // A boundary at the very end is for the run that resumes this one.
  if (has_steps && schedule.boundaries.front() > options.epochs)
    add("lr-step-epochs", "num-epochs", "the run ends before the learning rate changes");
  if (set.chosen("warmup-epochs") && schedule.warmup_epochs >= options.epochs)
    add("warmup-epochs", "num-epochs", "the run ends before the learning rate reaches --lr");
  else if (meets_step && schedule.boundaries.front() <= schedule.warmup_epochs)
    add("warmup-epochs", "lr-step-epochs", "the first step comes before the learning rate has reached --lr");
}

}  // namespace

bool has_effect(const TrainOptions& options, std::string_view name) {
  const auto needs = [&](const Need& need) { return name == need.option; };
  const auto* const need = std::ranges::find_if(kNeeds, needs);
  return need == std::end(kNeeds) || need->is_met(options);
}

std::vector<std::string> idle_options(const TrainOptions& options, const OptionSet& set) {
  std::vector<std::string> lines;
  for (const Need& need : kNeeds) {
    if (set.chosen(need.option) && !need.is_met(options))
      lines.push_back(fmt::format("--{} has no effect without {}", need.option, need.what));
  }
  add_unreached(options, set, lines);
  return lines;
}

}  // namespace dtrain::config
