#include <dtrain/train/local_steps.hpp>

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

namespace dtrain::train {

Json to_json(const LocalSteps& local) {
  return Json::object({{"steps", local.steps},
                       {"outer_optimizer", enum_name(kOuterOptimizerNames, local.outer)},
                       {"outer_lr", local.rate},
                       {"outer_mom", local.momentum}});
}

LocalSteps local_steps_from_json(const Json& json) {
  const std::string name = json.at("outer_optimizer").as_string();
  const auto outer = enum_value(kOuterOptimizerNames, name);
  if (!outer) throw DataError(fmt::format("there is no outer optimizer '{}'", name));
  const LocalSteps local{.steps = static_cast<int>(json.at("steps").as_integer()),
                         .outer = *outer,
                         .rate = static_cast<float>(json.at("outer_lr").as_number()),
                         .momentum = static_cast<float>(json.at("outer_mom").as_number())};
  require_in(between(1, kMostLocalSteps), local.steps, "local-steps");
  require_in(kOuterRateRange, local.rate, "outer-lr");
  require_in(kOuterMomentumRange, local.momentum, "outer-mom");
  return local;
}

int optimizer_slots(nn::OptimizerKind inner, const LocalSteps& local) {
  const bool keeps_momentum = local.any() && local.outer == OuterOptimizer::nesterov;
  return nn::optimizer_slots(inner) + (keeps_momentum ? 1 : 0);
}

int inner_steps(const LocalSteps& local, int whole, int samples) {
  DTRAIN_CHECK(whole % local.steps == 0 && samples > 0 && samples <= whole, "a round is of whole inner steps");
  const int inner = whole / local.steps;
  return (samples - 1) / inner + 1;
}

std::vector<backend::ShardRange> inner_parts(const backend::ShardRange& shard, int parts) {
  std::vector<backend::ShardRange> list;
  const auto begin = [&](int part) { return static_cast<int>(std::int64_t{shard.count} * part / parts); };
  for (int part = 0; part < parts; ++part) {
    list.push_back({.index = shard.index, .first = shard.first + begin(part), .count = begin(part + 1) - begin(part)});
  }
  return list;
}

}  // namespace dtrain::train
