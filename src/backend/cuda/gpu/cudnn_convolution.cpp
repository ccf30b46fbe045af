#include "cudnn_convolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>

namespace dtrain::backend::cuda {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point when_done(cudaStream_t stream) {
  const cudaError_t error = cudaStreamSynchronize(stream);
  if (error == cudaSuccess) return Clock::now();
  throw Error(fmt::format("the GPU failed while plans of cuDNN were timed: {}", cudaGetErrorString(error)));
}

}  // namespace

Cudnn::Cudnn(const CudnnFunctions& of, cudaStream_t on, void* memory, const EngineRules& choice, int to_time,
             PlanStore known)
    : functions(of), stream(on), workspace(memory), rules(choice), plans_to_time(to_time), store(std::move(known)) {
  check(functions, functions.cudnnCreate(&handle), "its start");
  check(functions, functions.cudnnSetStream(handle, stream), "the choice of a stream");
}

Cudnn::~Cudnn() {
  if (handle) functions.cudnnDestroy(handle);
}

bool Cudnn::has_plan_for(const Convolution& work) const {
  return Plans({.cudnn = functions, .handle = handle}, work, rules, {}).next().has_value();
}

CudnnConvolution::CudnnConvolution(Cudnn& cudnn, const Convolution& work)
    : cudnn_(cudnn),
      key_(work_key(work, cudnn.rules)),
      kept_(cudnn.store.find(key_)),
      plans_({.cudnn = cudnn.functions, .handle = cudnn.handle}, work, cudnn.rules, kept_),
      operands_(plans_.graph().operands(cudnn.workspace)),
      plan_(!kept_.empty() || cudnn.plans_to_time == 0 ? plans_.next() : fastest()) {}

bool CudnnConvolution::run() {
  while (plan_) {
    const cudnnStatus_t status = start(*plan_);
    if (settled_ || !is_refusal(status)) {
      check(cudnn_.functions, status, "a convolution");
      if (!std::exchange(settled_, true)) plans_.forget();
      return true;
    }
    plan_ = plans_.next();
  }
  return false;
}

std::optional<Plan> CudnnConvolution::fastest() {
  std::vector<Plan> plans;
  std::vector<double> seconds;
  while (static_cast<int>(plans.size()) < cudnn_.plans_to_time) {
    std::optional<Plan> plan = plans_.next();
    if (!plan) break;
    const std::optional<double> time = seconds_of(*plan);
    if (!time) continue;
    plans.push_back(std::move(*plan));
    seconds.push_back(*time);
  }
  if (plans.empty()) return std::nullopt;
  Plan& best = plans[clearly_fastest(seconds)];
  cudnn_.store.keep(key_, best.engine.name);
  return std::move(best);
}

// The shortest of a few measurements, of several runs each: the first run loads what the engine needs. nullopt: cuDNN
// refuses to run it.
std::optional<double> CudnnConvolution::seconds_of(const Plan& plan) const {
  constexpr int kMeasurements = 3, kRuns = 8;
  const cudnnStatus_t first = start(plan);
  if (is_refusal(first)) return std::nullopt;
  check(cudnn_.functions, first, "a convolution");
  std::vector<double> seconds;
  for (int k = 0; k < kMeasurements; ++k) {
    const Clock::time_point begin = when_done(cudnn_.stream);
    for (int run = 0; run < kRuns; ++run) check(cudnn_.functions, start(plan), "a convolution");
    seconds.push_back(std::chrono::duration<double>(when_done(cudnn_.stream) - begin).count() / kRuns);
  }
  return std::ranges::min(seconds);
}

cudnnStatus_t CudnnConvolution::start(const Plan& plan) const {
  return cudnn_.functions.cudnnBackendExecute(cudnn_.handle, plan.plan.get(), operands_.get());
}

}  // namespace dtrain::backend::cuda
