#include "idle_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

namespace dtrain::config {
namespace {

template <typename Kind>
bool is_one_of(Kind kind, std::initializer_list<Kind> kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool steps_rate(const TrainOptions& options) { return options.schedule.kind == nn::ScheduleKind::step; }
bool warms_up(const TrainOptions& options) { return options.schedule.warmup_epochs > 0; }
bool is_muon(const TrainOptions& options) { return options.optimizer.kind == nn::OptimizerKind::muon; }
bool cuts_windows(const TrainOptions& options) { return options.data.augment.random_resized_crop; }
bool is_rand_augment(const TrainOptions& options) {
  return options.data.augment.auto_augment == data::AutoAugment::rand;
}

bool takes_momentum(const TrainOptions& options) {
  using enum nn::OptimizerKind;
  return is_one_of(options.optimizer.kind, {sgd, nag, muon, lars, signum});
}

// A file says all of its network itself.
bool builds_network(const TrainOptions& options) { return !options.network.is_file(); }
constexpr const char* kByName = "a --network by its name";

struct Need {
  const char* option;
  const char* what;
  bool (*is_met)(const TrainOptions& options);
};

constexpr Need kNeeds[] = {
    {"num-layers", kByName, builds_network},
    {"backbone", kByName, builds_network},
    {"proposals", kByName, builds_network},
    {"width", kByName, builds_network},
    {"batch-norm", kByName, builds_network},
    {"drop-path", kByName, builds_network},
    {"ema-warmup", "--ema", [](const TrainOptions& options) { return options.optimizer.average > 0; }},
    {"min-random-area", "--random-resized-crop", cuts_windows},
    {"max-random-area", "--random-resized-crop", cuts_windows},
    {"min-random-aspect-ratio", "--random-resized-crop", cuts_windows},
    {"alternate-mirror", "--random-mirror 1",
     [](const TrainOptions& options) { return options.data.augment.random_mirror; }},
    {"rand-augment-ops", "--auto-augment rand", is_rand_augment},
    {"rand-augment-magnitude", "--auto-augment rand", is_rand_augment},
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
    {"mom", "--optimizer sgd, nag, muon, lars or signum", takes_momentum},
    {"muon-steps", "--optimizer muon", is_muon},
    {"muon-coefficients", "--optimizer muon", is_muon},
    {"muon-rest-mom", "--optimizer muon", is_muon},
};

}  // namespace

std::vector<std::string> idle_options(const TrainOptions& options, const OptionSet& set) {
  std::vector<std::string> lines;
  for (const Need& need : kNeeds) {
    if (set.chosen(need.option) && !need.is_met(options))
      lines.push_back(fmt::format("--{} has no effect without {}", need.option, need.what));
  }
  return lines;
}

}  // namespace dtrain::config
