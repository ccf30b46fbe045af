// Optimizer rules and learning-rate schedules as plain values; the arithmetic on weights is the backend's apply().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/nn/optimizer_rule.hpp>

namespace dtrain::nn {

OptimizerKind parse_optimizer(std::string_view name);  // UsageError with the nearest name
const char* optimizer_name(OptimizerKind kind);
int optimizer_slots(OptimizerKind kind);  // flat buffers of state: 1 or 2
// The rule with another kind, and with what is usual there for epsilon, beta1 and beta2.
Optimizer with_kind(Optimizer rule, OptimizerKind kind);
// The decay d of the average at update t, counted from 1. A pure function without libm.
double average_decay(const Optimizer& rule, std::uint64_t t);
// Of nadam at update t, counted from 1: with mu(t) = beta1 * (1 - 0.96^(0.004 t) / 2), what a step takes of the
// gradient, (1 - mu(t)) / (1 - mu(1)..mu(t)), and of the mean, mu(t+1) / (1 - mu(1)..mu(t+1)). A pure function without
// libm.
struct NadamShares {
  double of_gradient = 1, of_mean = 0;
};
NadamShares nadam_shares(const Optimizer& rule, std::uint64_t t);
void require_valid(const Optimizer& optimizer);  // UsageError naming the value that makes no sense

enum class ScheduleKind { step, cosine, one_cycle, poly };

// How the rate comes from where a warm-up begins to the base, by the share s of the warm-up that is over: MXNet's
// names. linear: s of the way, power2: s^2, sqrt: the root of s; constant: it stays where it begins, and then jumps.
enum class WarmUp { linear, power2, sqrt, constant };
inline constexpr EnumName<WarmUp> kWarmUpNames[] = {
    {WarmUp::linear, "linear"}, {WarmUp::power2, "power2"}, {WarmUp::sqrt, "sqrt"}, {WarmUp::constant, "constant"}};

// The learning rate as a pure function of the samples seen before the step, so it does not depend on the batch size.
struct Schedule {
  ScheduleKind kind = ScheduleKind::step;
  double base = 0.05;
  double factor = 0.1;               // step: multiply after each boundary
  std::vector<double> boundaries{};  // step: in epochs, ascending
  double warmup_epochs = 0;          // all but one_cycle: up to base; 0: none
  double total_epochs = 1;           // cosine, poly (both from the warm-up's end) and one_cycle (linear fall) end here
  double final_share = 0.0;          // cosine, one_cycle, poly: last rate as a share of base
  double rise_share = 0.3;           // one_cycle: share of the run spent rising linearly from base/25, in [0, 1)
  double cycles = 1;                 // cosine: falls of equal length, each from base to the last rate; a whole number
  double power = 2;                  // poly: of the share of the run that is left
  WarmUp warmup = WarmUp::linear;
  std::optional<double> warmup_start = {};  // the first rate, at most base; none: base/25
  // The rate of the step that begins after `samples_seen`; a boundary of b epochs counts from b * samples_per_epoch on.
  // samples_per_epoch >= 1. Uses own polynomials, no libm.
  double rate(std::uint64_t samples_seen, std::uint64_t samples_per_epoch) const;
};

ScheduleKind parse_schedule(std::string_view name);  // step | cosine | one-cycle | poly; UsageError: the nearest name
const char* schedule_name(ScheduleKind kind);
// UsageError naming the value that makes no sense, alone or beside the others. A run checks it before it trains.
void require_valid(const Schedule& schedule);

// Exact round trips. Reading throws DataError for a missing or wrong kind of member, UsageError for a value out of
// range. A schedule whose values contradict each other is read: its weights are as good as those of another.
Json to_json(const Optimizer& optimizer);
Optimizer optimizer_from_json(const Json& json);
Json to_json(const Schedule& schedule);
Schedule schedule_from_json(const Json& json);

}  // namespace dtrain::nn
