#include <dtrain/train/elastic_rate.hpp>

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::train {
namespace {

double gamma_at(const RateRamp& ramp, int taken) {
  if (taken >= ramp.length) return ramp.to;
  return ramp.from + (ramp.to - ramp.from) * taken / ramp.length;
}

}  // namespace

double gamma_of(const RateRamp& ramp) { return gamma_at(ramp, ramp.taken); }

double gamma_before(const RateRamp& ramp) { return ramp.taken == 0 ? ramp.from : gamma_at(ramp, ramp.taken - 1); }

RateRamp after_step(const RateRamp& ramp) {
  RateRamp next = ramp;
  next.taken = std::min(ramp.taken + 1, ramp.length + 1);
  return next;
}

RateRamp aimed_at(const RateRamp& ramp, double to, ElasticRate rule, int length) {
  if (rule == ElasticRate::none) to = 1;
  if (ramp.to == to) return ramp;
  return {.from = gamma_before(ramp), .to = to, .length = rule == ElasticRate::smooth ? length : 0, .taken = 0};
}

Json to_json(const RateRamp& ramp) {
  return Json::object({{"from", ramp.from}, {"to", ramp.to}, {"length", ramp.length}, {"taken", ramp.taken}});
}

RateRamp ramp_from_json(const Json& json) {
  const RateRamp ramp{.from = json.at("from").as_number(),
                      .to = json.at("to").as_number(),
                      .length = static_cast<int>(json.at("length").as_integer()),
                      .taken = static_cast<int>(json.at("taken").as_integer())};
  if (!(ramp.from > 0) || !(ramp.to > 0) || ramp.length < 0 || ramp.taken < 0) {
    throw DataError("the ramp of the learning rate makes no sense");
  }
  return ramp;
}

nn::Optimizer corrected(const nn::Optimizer& rule, const RateRamp& ramp) {
  nn::Optimizer result = rule;
  if (rule.kind == nn::OptimizerKind::sgd || rule.kind == nn::OptimizerKind::lars) {
    result.momentum = static_cast<float>(rule.momentum * (gamma_of(ramp) / gamma_before(ramp)));
  }
  return result;
}

}  // namespace dtrain::train
