#include <dtrain/nn/optimizer.hpp>

#include <fmt/format.h>

#include <dtrain/base/error.hpp>

#include "float_json.hpp"
#include "names.hpp"

namespace dtrain::nn {
namespace {

constexpr const char* kNames[] = {"sgd", "nag", "adam", "adamw"};  // in the order of OptimizerKind

void require(bool holds, const char* name, float value, const char* range) {
  if (!holds) throw UsageError(fmt::format("{} = {} is not {}", name, value, range));
}

}  // namespace

OptimizerKind parse_optimizer(std::string_view name) {
  if (const auto index = index_of(kNames, name)) return static_cast<OptimizerKind>(*index);
  throw UsageError(fmt::format("there is no optimizer \"{}\"", name), advice(kNames, name));
}

const char* optimizer_name(OptimizerKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

int optimizer_slots(OptimizerKind kind) { return kind == OptimizerKind::adam || kind == OptimizerKind::adamw ? 2 : 1; }

void require_valid(const Optimizer& o) {
  require(o.momentum >= 0 && o.momentum < 1, "momentum", o.momentum, "in [0, 1)");
  require(o.weight_decay >= 0 && o.weight_decay < 1, "weight decay", o.weight_decay, "in [0, 1)");
  require(o.beta1 >= 0 && o.beta1 < 1, "beta1", o.beta1, "in [0, 1)");
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2", o.beta2, "in [0, 1)");
  require(o.epsilon > 0 && o.epsilon < 1, "epsilon", o.epsilon, "in (0, 1)");
}

Json to_json(const Optimizer& o) {
  return Json::object({{"kind", optimizer_name(o.kind)},
                       {"momentum", float_json(o.momentum)},
                       {"weight_decay", float_json(o.weight_decay)},
                       {"beta1", float_json(o.beta1)},
                       {"beta2", float_json(o.beta2)},
                       {"epsilon", float_json(o.epsilon)}});
}

Optimizer optimizer_from_json(const Json& json) {
  const auto number = [&](const char* key) { return static_cast<float>(json.at(key).as_number()); };
  const Optimizer optimizer{.kind = parse_optimizer(json.at("kind").as_string()),
                            .momentum = number("momentum"),
                            .weight_decay = number("weight_decay"),
                            .beta1 = number("beta1"),
                            .beta2 = number("beta2"),
                            .epsilon = number("epsilon")};
  require_valid(optimizer);
  return optimizer;
}

}  // namespace dtrain::nn
