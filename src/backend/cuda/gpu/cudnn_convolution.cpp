#include "cudnn_convolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>

#include "../plans/plan_proof.hpp"
#include "gpu_error.hpp"

namespace dtrain::backend::cuda {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point when_done(cudaStream_t stream) {
  const cudaError_t error = cudaStreamSynchronize(stream);
  if (error == cudaSuccess) return Clock::now();
  throw Error(fmt::format("the GPU failed while plans of cuDNN were timed: {}", cudaGetErrorString(error)));
}

// Null where the GPU has not that much left.
class ProofMemory {
 public:
  explicit ProofMemory(std::uint64_t bytes) {
    const cudaError_t error = cudaMalloc(&memory_, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      memory_ = nullptr;
    } else {
      check(error, "a reservation of memory");
    }
  }
  ~ProofMemory() { cudaFree(memory_); }
  ProofMemory(const ProofMemory&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
};

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

bool Cudnn::has_plan_for(const Convolution& work) {
  Plans plans({.cudnn = functions, .handle = handle}, work, rules, {});
  return next(plans, work).has_value();
}

std::optional<Plan> Cudnn::next(Plans& plans, const Convolution& work) {
  std::optional<Plan> plan = plans.next();
  while (plan && needs_proof(plan->engine, work, rules) && !is_proven(*plan, work)) plan = plans.next();
  return plan;
}

bool Cudnn::is_proven(const Plan& plan, const Convolution& work) {
  const std::string key = work_key(work, rules);
  if (const std::optional<bool> known = store.proof(key, plan.engine.name)) return *known;
  const std::optional<bool> same = gives_the_same_bits(plan, work);
  if (!same) return false;
  try {
    store.keep_proof(key, plan.engine.name, *same);
  } catch (const Error&) {
    // This process knows it; the next one on a machine without a writable cache tries the engine again.
  }
  return *same;
}

// nullopt: there is no memory to try it in.
std::optional<bool> Cudnn::gives_the_same_bits(const Plan& plan, const Convolution& work) const {
  const ProofLayout layout(work);
  const ProofMemory memory(layout.bytes());
  if (!memory.data()) return std::nullopt;
  const OperationGraph graph({.cudnn = functions, .handle = handle}, layout.at(memory.data()));
  const Descriptor operands = graph.operands(workspace);
  const std::vector<std::byte> inputs = layout.inputs();
  check(cudaMemcpyAsync(memory.data(), inputs.data(), inputs.size(), cudaMemcpyHostToDevice, stream),
        "a copy of the input of a proof");
  return always_the_same([&]() -> std::optional<std::vector<std::byte>> {
    const cudnnStatus_t status = functions.cudnnBackendExecute(handle, plan.plan.get(), operands.get());
    if (is_refusal(status)) return std::nullopt;
    check(functions, status, "a convolution");
    std::vector<std::byte> results(static_cast<std::size_t>(layout.results_bytes()));
    check(cudaMemcpyAsync(results.data(), memory.data() + layout.results_begin(), results.size(),
                          cudaMemcpyDeviceToHost, stream),
          "a copy of the result of a proof");
    check(cudaStreamSynchronize(stream), "the end of a proof");
    return results;
  });
}

CudnnConvolution::CudnnConvolution(Cudnn& cudnn, const Convolution& work)
    : cudnn_(cudnn),
      work_(work),
      key_(work_key(work, cudnn.rules)),
      kept_(cudnn.store.find(key_)),
      plans_({.cudnn = cudnn.functions, .handle = cudnn.handle}, work, cudnn.rules, kept_),
      operands_(plans_.graph().operands(cudnn.workspace)),
      plan_(!kept_.empty() || cudnn.plans_to_time == 0 ? cudnn_.next(plans_, work_) : fastest()) {}

bool CudnnConvolution::run() {
  while (plan_) {
    const cudnnStatus_t status = start(*plan_);
    if (settled_ || !is_refusal(status)) {
      check(cudnn_.functions, status, "a convolution");
      if (!std::exchange(settled_, true)) plans_.forget();
      return true;
    }
    plan_ = cudnn_.next(plans_, work_);
  }
  return false;
}

std::optional<Plan> CudnnConvolution::fastest() {
  std::vector<Plan> plans;
  std::vector<double> seconds;
  while (static_cast<int>(plans.size()) < cudnn_.plans_to_time) {
    std::optional<Plan> plan = cudnn_.next(plans_, work_);
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
