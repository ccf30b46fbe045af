#include <dtrain/train/elastic_rate.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::train {
namespace {

constexpr const char* kBatchNames[] = {"fixed-global", "per-worker"};  // in the order of ElasticBatch
constexpr const char* kRateNames[] = {"smooth", "linear", "none"};     // in the order of ElasticRate

std::size_t index_of(std::span<const char* const> names, std::string_view name, std::string_view what) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::vector<std::string> all(names.begin(), names.end());
  const auto near = nearest_name(name, all);
  throw UsageError(fmt::format("there is no {} \"{}\"", what, name),
                   near ? fmt::format("did you mean {}?", *near) : fmt::format("known: {}", join(all, ", ")));
}

double gamma_at(const RateRamp& ramp, int taken) {
  if (taken >= ramp.length) return ramp.to;
  return ramp.from + (ramp.to - ramp.from) * taken / ramp.length;
}

}  // namespace

ElasticBatch parse_elastic_batch(std::string_view name) {
  return static_cast<ElasticBatch>(index_of(kBatchNames, name, "way to size an elastic batch called"));
}
const char* elastic_batch_name(ElasticBatch batch) { return kBatchNames[static_cast<std::size_t>(batch)]; }

ElasticRate parse_elastic_rate(std::string_view name) {
  return static_cast<ElasticRate>(index_of(kRateNames, name, "rule for the elastic learning rate called"));
}
const char* elastic_rate_name(ElasticRate rate) { return kRateNames[static_cast<std::size_t>(rate)]; }

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
