#include "schedule.hpp"

#include <fmt/format.h>

#include <utility>

namespace dtrain::config {

std::string settle_schedule(const OptionSet& set, TrainOptions& options) {
  nn::Schedule& schedule = options.schedule;
  const Option* const given = set.find("warmup-epochs");
  if (given && given->source >= Source::environment) return {};
  if (schedule.kind == nn::ScheduleKind::one_cycle && schedule.warmup_epochs > 0) {
    return fmt::format("The warm-up of {} epochs is left out: one-cycle rises by itself",
                       std::exchange(schedule.warmup_epochs, 0.0));
  }
  const bool falls_behind_warm_up =
      schedule.kind == nn::ScheduleKind::cosine || schedule.kind == nn::ScheduleKind::poly;
  if (!falls_behind_warm_up || options.epochs == 0 || schedule.warmup_epochs < options.epochs) return {};
  const double before = std::exchange(schedule.warmup_epochs, options.epochs / 2.0);
  return fmt::format("The warm-up of {} epochs would fill the run: it takes {}", before, schedule.warmup_epochs);
}

void check_schedule(const TrainOptions& options) {
  if (options.epochs == 0 || options.benchmark || options.test_io) return;
  nn::Schedule schedule = options.schedule;
  schedule.total_epochs = options.epochs;
  nn::require_valid(schedule);
}

}  // namespace dtrain::config
