#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>
#include <dtrain/nn/optimizer.hpp>
#include <dtrain/nn/optimizer_ranges.hpp>

#include "graph/names.hpp"

namespace dtrain::nn {
namespace {

constexpr const char* kNames[] = {"step", "cosine", "one-cycle", "poly"};  // in the order of ScheduleKind
constexpr double kStartShare = 1.0 / 25;                                   // of the base rate, where a rise begins

// Exactly `from` at share 0 and before, exactly `to` at 1 and after.
double between(double from, double to, double share) {
  const double inside = std::clamp(share, 0.0, 1.0);
  return from * (1 - inside) + to * inside;
}

double step_share(const Schedule& s, double epochs) {
  double share = 1;
  for (const double boundary : s.boundaries) {
    if (epochs >= boundary) share *= s.factor;
  }
  return share;
}

// Of a number from 0 on that is far below 2^63.
double whole_part(double number) { return static_cast<double>(static_cast<std::int64_t>(number)); }

// The share of the run behind the warm-up.
double done_share(const Schedule& s, double epochs) {
  return std::clamp((epochs - s.warmup_epochs) / (s.total_epochs - s.warmup_epochs), 0.0, 1.0);
}

// Loshchilov and Hutter 2017, periods of equal length from the end of the warm-up.
double cosine_share(const Schedule& s, double epochs) {
  const double periods = done_share(s, epochs) * s.cycles;
  const double done = periods < s.cycles ? periods - whole_part(periods) : 1;
  return between(s.final_share, 1, (1 + portable_turn(done / 2).x) / 2);
}

// MXNet's PolyScheduler.
double poly_share(const Schedule& s, double epochs) {
  const double left = 1 - done_share(s, epochs);
  return between(s.final_share, 1, left > 0 ? portable_pow(left, s.power) : 0);
}

// Smith and Topin 2018: a straight rise, a straight fall. A run without epochs is at its end, as with the others.
double one_cycle_share(const Schedule& s, double epochs) {
  if (s.total_epochs == 0) return s.final_share;
  const double peak = s.rise_share * s.total_epochs;
  if (epochs < peak) return between(kStartShare, 1, epochs / peak);
  return between(1, s.final_share, (epochs - peak) / (s.total_epochs - peak));
}

double warmup_share(WarmUp kind, double over) {
  switch (kind) {
    case WarmUp::linear:
      break;
    case WarmUp::power2:
      return over * over;
    case WarmUp::sqrt:
      return portable_sqrt(over);
    case WarmUp::constant:
      return 0;
  }
  return over;
}

double share_after_warmup(const Schedule& s, double epochs) {
  switch (s.kind) {
    case ScheduleKind::step:
      return step_share(s, epochs);
    case ScheduleKind::cosine:
      return cosine_share(s, epochs);
    case ScheduleKind::one_cycle:
      return one_cycle_share(s, epochs);
    case ScheduleKind::poly:
      return poly_share(s, epochs);
  }
  return 1;
}

void require(bool holds, const char* what) {
  if (!holds) throw UsageError(fmt::format("learning rate schedule: {}", what));
}

void require_ranges(const Schedule& s) {
  const ScheduleRanges& ranges = kScheduleRanges;
  require_in(ranges.base, s.base, "lr");
  require_in(ranges.factor, s.factor, "lr-factor");
  require_in(ranges.warmup_epochs, s.warmup_epochs, "warmup-epochs");
  if (s.warmup_start) require_in(ranges.warmup_start, *s.warmup_start, "warmup-lr");
  require_in(ranges.final_share, s.final_share, "lr-final");
  require_in(ranges.rise_share, s.rise_share, "lr-rise");
  require_in(ranges.cycles, s.cycles, "lr-cycles");
  require_in(ranges.power, s.power, "lr-power");
  require(std::ranges::all_of(s.boundaries, [](double b) { return std::isfinite(b) && b >= 0; }) &&
              std::ranges::is_sorted(s.boundaries),
          "the epochs of its steps must ascend");
  require(std::isfinite(s.total_epochs) && s.total_epochs >= 0, "the number of epochs must be 0 or more");
}

void require_warmup(const Schedule& s) {
  if (s.warmup_epochs > 0 && s.warmup_start && *s.warmup_start > s.base) {
    throw SettingError("warmup-lr",
                       fmt::format("must be at most the learning rate {}, not {}", s.base, *s.warmup_start));
  }
  if (s.kind == ScheduleKind::one_cycle && s.warmup_epochs > 0)
    throw SettingError("warmup-epochs", "one-cycle rises by itself and takes no warm-up", "use 0");
  const bool falls_behind_warm_up = s.kind == ScheduleKind::cosine || s.kind == ScheduleKind::poly;
  if (!falls_behind_warm_up || s.warmup_epochs < s.total_epochs) return;
  throw SettingError("warmup-epochs",
                     fmt::format("the warm-up of {} must end before the run, which has {} epoch{}",
                                 schedule_name(s.kind), s.total_epochs, s.total_epochs == 1 ? "" : "s"),
                     "use fewer, or a larger number of epochs");
}

}  // namespace

double Schedule::rate(std::uint64_t samples_seen, std::uint64_t samples_per_epoch) const {
  const double epochs = static_cast<double>(samples_seen) / static_cast<double>(samples_per_epoch);
  if (epochs < warmup_epochs) {
    const double start_share = warmup_start ? *warmup_start / base : kStartShare;
    return base * between(start_share, 1, warmup_share(warmup, epochs / warmup_epochs));
  }
  return base * share_after_warmup(*this, epochs);
}

void require_valid(const Schedule& s) {
  require_ranges(s);
  require(s.total_epochs > 0, "the number of epochs must be more than 0");
  if (s.cycles != whole_part(s.cycles))
    throw SettingError("lr-cycles", fmt::format("must be a whole number, not {}", s.cycles));
  require_warmup(s);
}

ScheduleKind parse_schedule(std::string_view name) {
  if (const auto index = index_of(kNames, name)) return static_cast<ScheduleKind>(*index);
  throw UsageError(fmt::format("there is no learning rate schedule \"{}\"", name), advice(kNames, name));
}

const char* schedule_name(ScheduleKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

Json to_json(const Schedule& s) {
  Json json = Json::object({{"kind", schedule_name(s.kind)},
                            {"base", s.base},
                            {"factor", s.factor},
                            {"boundaries", Json::Array(s.boundaries.begin(), s.boundaries.end())},
                            {"warmup_epochs", s.warmup_epochs},
                            {"total_epochs", s.total_epochs},
                            {"final_share", s.final_share},
                            {"rise_share", s.rise_share},
                            {"cycles", s.cycles},
                            {"power", s.power}});
  if (s.warmup != WarmUp::linear) json["warmup"] = enum_name(kWarmUpNames, s.warmup);
  if (s.warmup_start) json["warmup_start"] = *s.warmup_start;
  return json;
}

Schedule schedule_from_json(const Json& json) {
  const auto number = [&](const char* key) { return json.at(key).as_number(); };
  Schedule schedule{.kind = parse_schedule(json.at("kind").as_string()),
                    .base = number("base"),
                    .factor = number("factor"),
                    .boundaries = {},
                    .warmup_epochs = number("warmup_epochs"),
                    .total_epochs = number("total_epochs"),
                    .final_share = number("final_share"),
                    .rise_share = number("rise_share")};
  if (json.find("cycles")) {  // older documents know neither restarts nor poly
    schedule.cycles = number("cycles");
    schedule.power = number("power");
  }
  if (const Json* warmup = json.find("warmup")) {
    const auto kind = enum_value(kWarmUpNames, warmup->as_string());
    if (!kind) throw UsageError(fmt::format("there is no warm-up \"{}\"", warmup->as_string()));
    schedule.warmup = *kind;
  }
  if (json.find("warmup_start")) schedule.warmup_start = number("warmup_start");
  for (const Json& boundary : json.at("boundaries").as_array()) schedule.boundaries.push_back(boundary.as_number());
  require_ranges(schedule);
  return schedule;
}

}  // namespace dtrain::nn
