#include "schedule.hpp"

#include <fmt/format.h>

#include <utility>

namespace dtrain::config {

static constexpr double kFittedShare = 0.5;  // of the run

static bool falls_behind_warm_up(const nn::Schedule& schedule) {
  return schedule.kind == nn::ScheduleKind::cosine || schedule.kind == nn::ScheduleKind::poly;
}

static std::string epochs_text(double epochs) { return fmt::format("{} epoch{}", epochs, epochs == 1 ? "" : "s"); }

std::string settle_schedule(const OptionSet& set, TrainOptions& options) {
  nn::Schedule& schedule = options.schedule;
  const Option* const given = set.find("warmup-epochs");
  if (given && given->source >= Source::environment && !options.has_warmup_of_file) return {};
  if (schedule.kind == nn::ScheduleKind::one_cycle && schedule.warmup_epochs > 0) {
    return fmt::format("The warm-up of {} is left out: one-cycle rises by itself",
                       epochs_text(std::exchange(schedule.warmup_epochs, 0.0)));
  }
  if (!falls_behind_warm_up(schedule) || options.epochs == 0 || schedule.warmup_epochs < options.epochs) return {};
  const double before = std::exchange(schedule.warmup_epochs, kFittedShare * options.epochs);
  return fmt::format("The warm-up of {} would fill the run: it takes {}", epochs_text(before), schedule.warmup_epochs);
}

static bool may_be_fitted(const nn::Schedule& schedule) {
  return falls_behind_warm_up(schedule) && schedule.warmup_epochs == kFittedShare * schedule.total_epochs;
}

bool warmups_may_differ(const OptionSet& set, const nn::Schedule& one, const nn::Schedule& other) {
  if (one.kind == nn::ScheduleKind::one_cycle || other.kind == nn::ScheduleKind::one_cycle) return true;
  if (one.total_epochs == other.total_epochs) return false;
  return set.find("warmup-epochs")->origin == "--finetune" || may_be_fitted(one) || may_be_fitted(other);
}

void mark_warmup_of_file(OptionSet& set) {
  if (!set.chosen("warmup-epochs") || set.find("warmup-epochs")->source >= Source::environment) return;
  Option& of_file = *set.find("warmup-of-file");
  of_file.set("true");
  of_file.source = Source::flag;
}

void check_schedule(const TrainOptions& options) {
  if (options.epochs == 0 || options.benchmark || options.test_io) return;
  nn::Schedule schedule = options.schedule;
  schedule.total_epochs = options.epochs;
  nn::require_valid(schedule);
}

}  // namespace dtrain::config
