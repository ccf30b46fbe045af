#include <dtrain/nn/optimizer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>
#include <dtrain/nn/optimizer_ranges.hpp>

#include "graph/float_json.hpp"
#include "graph/names.hpp"

namespace dtrain::nn {
namespace {

constexpr const char* kNames[] = {"sgd",  "nag",    "adam",  "adamw",    "muon",   "rmsprop", "adagrad", "lamb",
                                  "lars", "adamax", "nadam", "adadelta", "signum", "ftml"};  // as OptimizerKind

void require(bool holds, std::string_view name, float value, std::string_view range) {
  if (!holds) throw UsageError(fmt::format("{} = {} is not {}", name, value, range));
}

void require_valid(const NewtonSchulz& n) {
  require_in(kOptimizerRanges.muon_steps, n.steps, "muon-steps");
  for (const float coefficient : {n.a, n.b, n.c}) {
    require_in(kOptimizerRanges.muon_coefficient, coefficient, "muon-coefficients");
  }
}

NewtonSchulz newton_schulz_from(const Json& json) {
  const Json::Array& coefficients = json.at("muon_coefficients").as_array();
  if (coefficients.size() != 3) throw DataError("muon has three coefficients");
  const auto coefficient = [&](std::size_t k) { return static_cast<float>(coefficients[k].as_number()); };
  const std::int64_t steps = std::clamp<std::int64_t>(json.at("muon_steps").as_integer(), 0, 1 << 20);
  return {.steps = static_cast<int>(steps), .a = coefficient(0), .b = coefficient(1), .c = coefficient(2)};
}

}  // namespace

OptimizerKind parse_optimizer(std::string_view name) {
  if (const auto index = index_of(kNames, name)) return static_cast<OptimizerKind>(*index);
  throw UsageError(fmt::format("there is no optimizer \"{}\"", name), advice(kNames, name));
}

const char* optimizer_name(OptimizerKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

int optimizer_slots(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
    case OptimizerKind::lamb:
    case OptimizerKind::adamax:
    case OptimizerKind::nadam:
    case OptimizerKind::adadelta:
      return 2;
    default:
      return 1;
  }
}

Optimizer with_kind(Optimizer rule, OptimizerKind kind) {
  const Optimizer usual;
  rule.kind = kind;
  rule.beta1 = kind == OptimizerKind::ftml ? 0.6f : usual.beta1;
  rule.beta2 = kind == OptimizerKind::rmsprop || kind == OptimizerKind::adadelta ? 0.9f : usual.beta2;
  rule.epsilon = kind == OptimizerKind::lamb       ? 1e-6f
                 : kind == OptimizerKind::adagrad  ? 1e-7f
                 : kind == OptimizerKind::adadelta ? 1e-5f
                                                   : usual.epsilon;
  return rule;
}

double average_decay(const Optimizer& rule, std::uint64_t t) {
  const double decay = rule.average;
  return rule.average_warms_up ? std::min(decay, 1 - portable_pow(static_cast<double>(t), -2.0 / 3)) : decay;
}

NadamShares nadam_shares(const Optimizer& rule, std::uint64_t t) {
  constexpr double kLate = 1e4;  // 0.96 to this power is nothing beside 1
  const auto mu = [&](std::uint64_t step) {
    return rule.beta1 * (1 - 0.5 * portable_pow(0.96, std::min(kLate, 0.004 * static_cast<double>(step))));
  };
  constexpr double kVanished = 1e-20;  // beside 1
  double product = 1;
  for (std::uint64_t step = 1; step <= t && product > kVanished; ++step) product *= mu(step);
  const double next = mu(t + 1);
  return {(1 - mu(t)) / (1 - product), next / (1 - product * next)};
}

void require_valid(const Optimizer& o) {
  const OptimizerRanges& ranges = kOptimizerRanges;
  require_in(ranges.momentum, o.momentum, "mom");
  require_in(ranges.weight_decay, o.weight_decay, "wd");
  require(o.beta1 >= 0 && o.beta1 < 1, "beta1", o.beta1, "in [0, 1)");
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2", o.beta2, "in [0, 1)");
  require(o.epsilon > 0 && o.epsilon < 1, "epsilon", o.epsilon, "in (0, 1)");
  require_in(ranges.lr_factor, o.bias_lr_factor, "bias-lr-factor");
  require_in(ranges.lr_factor, o.head_lr_factor, "head-lr-factor");
  require_in(ranges.layer_decay, o.layer_decay, "layer-decay");
  const bool decays_by_layer =
      o.kind == OptimizerKind::sgd || o.kind == OptimizerKind::nag || o.kind == OptimizerKind::adamw;
  if (o.layer_decay != 1 && !decays_by_layer) {
    throw UsageError(fmt::format("optimizer {}: its rates do not decay by layer", optimizer_name(o.kind)),
                     "use sgd, nag or adamw with setting 'layer-decay'");
  }
  require_in(ranges.rest_momentum, o.rest_momentum, "muon-rest-mom");
  require_in(ranges.clip, o.clip_norm, "clip-norm");
  require_in(ranges.clip, o.clip_gradient, "clip-gradient");
  require_in(ranges.average, o.average, "ema");
  require_valid(o.newton_schulz);
}

Json to_json(const Optimizer& o) {
  const NewtonSchulz& n = o.newton_schulz;
  return Json::object({{"kind", optimizer_name(o.kind)},
                       {"momentum", float_json(o.momentum)},
                       {"weight_decay", float_json(o.weight_decay)},
                       {"beta1", float_json(o.beta1)},
                       {"beta2", float_json(o.beta2)},
                       {"epsilon", float_json(o.epsilon)},
                       {"bias_lr_factor", float_json(o.bias_lr_factor)},
                       {"head_lr_factor", float_json(o.head_lr_factor)},
                       {"layer_decay", float_json(o.layer_decay)},
                       {"muon_steps", n.steps},
                       {"muon_coefficients", Json::array({float_json(n.a), float_json(n.b), float_json(n.c)})},
                       {"muon_rest_momentum", float_json(o.rest_momentum)},
                       {"clip_norm", float_json(o.clip_norm)},
                       {"clip_gradient", float_json(o.clip_gradient)},
                       {"average", float_json(o.average)},
                       {"average_warms_up", o.average_warms_up}});
}

Optimizer optimizer_from_json(const Json& json) {
  const auto number = [&](const char* key) { return static_cast<float>(json.at(key).as_number()); };
  Optimizer optimizer{.kind = parse_optimizer(json.at("kind").as_string()),
                      .momentum = number("momentum"),
                      .weight_decay = number("weight_decay"),
                      .beta1 = number("beta1"),
                      .beta2 = number("beta2"),
                      .epsilon = number("epsilon")};
  if (json.find("muon_steps")) {  // older documents know neither factors nor muon
    optimizer.bias_lr_factor = number("bias_lr_factor");
    optimizer.head_lr_factor = number("head_lr_factor");
    optimizer.newton_schulz = newton_schulz_from(json);
    optimizer.rest_momentum = number("muon_rest_momentum");
  }
  if (json.find("clip_norm")) {  // nor cuts and averages
    optimizer.clip_norm = number("clip_norm");
    optimizer.clip_gradient = number("clip_gradient");
    optimizer.average = number("average");
    optimizer.average_warms_up = json.at("average_warms_up").as_bool();
  }
  if (json.find("layer_decay")) optimizer.layer_decay = number("layer_decay");
  require_valid(optimizer);
  return optimizer;
}

}  // namespace dtrain::nn
