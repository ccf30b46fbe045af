// What the size of a step and the learning rate do when workers come and go: pure functions.
#pragma once

#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/nn/optimizer.hpp>

namespace dtrain::train {

// fixed_global: a step always has G samples in V shards, so the bits do not depend on the workers.
// per_worker: a step has b samples for each worker, one shard a worker; the learning rate follows the batch.
enum class ElasticBatch { fixed_global, per_worker };
constexpr EnumName<ElasticBatch> kElasticBatchNames[] = {{ElasticBatch::fixed_global, "fixed-global"},
                                                         {ElasticBatch::per_worker, "per-worker"}};

// How the rate follows the batch of per_worker. smooth: in steps towards the new size; linear: at once; none: not.
enum class ElasticRate { smooth, linear, none };
constexpr EnumName<ElasticRate> kElasticRateNames[] = {
    {ElasticRate::smooth, "smooth"}, {ElasticRate::linear, "linear"}, {ElasticRate::none, "none"}};

// The factor gamma on the schedule's learning rate (Lin et al. 2019, arXiv 1904.12043): at step t of a ramp that began
// at t0, gamma_t = from + (to - from) * (t - t0) / T while t - t0 < T, then `to`. State of the run, the same on all
// ranks.
struct RateRamp {
  double from = 1, to = 1;
  int length = 0;  // T, steps
  int taken = 0;   // t - t0; stays at length + 1
  friend bool operator==(const RateRamp&, const RateRamp&) = default;
};

double gamma_of(const RateRamp& ramp);      // of the step that comes
double gamma_before(const RateRamp& ramp);  // of the step before it
RateRamp after_step(const RateRamp& ramp);
// A ramp towards `to` that begins where the last step left off; the same ramp when it goes there already.
RateRamp aimed_at(const RateRamp& ramp, double to, ElasticRate rule, int length);

Json to_json(const RateRamp& ramp);
RateRamp ramp_from_json(const Json& json);  // DataError

// The rule of the step that comes. sgd keeps the learning rate inside its momentum, so that is scaled by
// gamma_t / gamma_(t-1), by way of the factor it is multiplied with anyway; the others keep bare gradients.
nn::Optimizer corrected(const nn::Optimizer& rule, const RateRamp& ramp);

}  // namespace dtrain::train
