#include "cudnn_convolution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>

#include "../plans/plan_proof.hpp"
#include "../product.hpp"
#include "device_bytes.hpp"
#include "kernels.hpp"
#include "native/product.hpp"

namespace dtrain::backend::cuda {
namespace {

using Clock = std::chrono::steady_clock;

Clock::time_point when_done(cudaStream_t stream) {
  const cudaError_t error = cudaStreamSynchronize(stream);
  if (error == cudaSuccess) return Clock::now();
  throw DeviceFailure(fmt::format("the GPU failed, noticed while plans were timed: {}", cudaGetErrorString(error)));
}

constexpr const char* kProof = "a copy of the result of a proof";

// A proof of dtrain's own kernel is one of its source: what was mended or sped up since is proven again.
std::string proof_name(const EngineFacts& engine) {
  return engine.own ? engine.name + "@" DTRAIN_PRODUCT_SOURCE : engine.name;
}

// Null where the GPU has not that much left.
class ProofMemory {
 public:
  ProofMemory(std::uint64_t bytes, cudaStream_t stream) : stream_(stream) {
    const cudaError_t error = cudaMalloc(&memory_, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      memory_ = nullptr;
    } else {
      check(error, "a reservation of memory");
    }
  }
  ~ProofMemory() {
    cudaStreamSynchronize(stream_);  // a proof that ends early leaves work behind
    cudaFree(memory_);
  }
  ProofMemory(const ProofMemory&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  const cudaStream_t stream_;
  void* memory_ = nullptr;
};

void fill_inputs(const ProofLayout& layout, std::byte* memory, cudaStream_t stream) {
  const std::vector<std::byte> pattern = layout.pattern();
  for (std::uint64_t at = 0; at < layout.results_begin(); at += pattern.size()) {
    const std::uint64_t bytes = std::min<std::uint64_t>(pattern.size(), layout.results_begin() - at);
    check(cudaMemcpyAsync(memory + at, pattern.data(), bytes, cudaMemcpyHostToDevice, stream),
          "a copy of the input of a proof");
  }
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

bool Cudnn::fuses(const Convolution& work) {
  if (!may_fuse(work) && !product_of(work)) return false;
  const std::string kept = store.find(work_key(work, rules));
  if (!may_fuse(work) && !tile_of_engine(kept)) {
    if (rules.own != OwnEngines::always) return false;
    Convolution apart = work;
    apart.moments = nullptr;
    if (plans_to_time > 0 && !tile_of_engine(store.find(work_key(apart, rules)))) return false;
  }
  Plans plans({.cudnn = functions, .handle = handle}, work, rules, kept);
  OwnRefused own;
  return next(plans, work, own).has_value();
}

bool Cudnn::start(const Plan& plan, const Convolution& work, const Descriptor& operands) const {
  if (plan.engine.own) return start_own(plan, work);
  const cudnnStatus_t status = functions.cudnnBackendExecute(handle, plan.plan->get(), operands.get());
  if (is_refusal(status)) return false;
  check(functions, status, "a convolution");
  return true;
}

bool Cudnn::start_own(const Plan& plan, const Convolution& work) const {
  const cudaError_t error = launch_product(work, tile_of_engine(plan.engine.name).value(), workspace, stream);
  if (error == cudaErrorNotSupported) return false;
  check(error, "the start of a product of matrices");
  return true;
}

std::optional<Plan> Cudnn::next(Plans& plans, const Convolution& work, OwnRefused& own_refused) {
  while (std::optional<Plan> plan = plans.next()) {
    if (!needs_proof(plan->engine, work, rules)) return plan;
    const Proof found = proof(*plan, work);
    if (found == Proof::passed) return plan;
    if (plan->engine.own) {
      const char* const why = found == Proof::failed
                                  ? "did not prove that it computes this on this kind of GPU"
                                  : "could not be compared with cuDNN, which needs memory and a plan of cuDNN";
      own_refused = {fmt::format("{} {}", plan->engine.name, why), true};
    }
  }
  return std::nullopt;
}

Cudnn::Proof Cudnn::proof(const Plan& plan, const Convolution& work) {
  const std::string key = work_key(work, rules);
  if (const std::optional<bool> known = store.proof(key, proof_name(plan.engine))) {
    return *known ? Proof::passed : Proof::failed;
  }
  const std::optional<bool> proven =
      plan.engine.own ? agrees_with_cudnn(plan, work, key) : gives_the_same_bits(plan, work);
  if (!proven) return Proof::not_tried;
  keep(key, plan, *proven);
  return *proven ? Proof::passed : Proof::failed;
}

void Cudnn::keep(const std::string& key, const Plan& plan, bool proven) {
  try {
    store.keep_proof(key, proof_name(plan.engine), proven);
  } catch (const Error&) {
    // This process knows it; the next one on a machine without a writable cache tries the engine again.
  }
}

void Cudnn::begin_proof(const std::string& key, const Plan& plan) {
  try {
    store.begin_proof(key, proof_name(plan.engine));
  } catch (const Error&) {
    // likewise
  }
}

void Cudnn::drop_proof(const std::string& key, const Plan& plan) {
  try {
    store.drop_proof(key, proof_name(plan.engine));
  } catch (const Error&) {
    // likewise
  }
}

// nullopt: there is no memory to try it in.
std::optional<bool> Cudnn::gives_the_same_bits(const Plan& plan, const Convolution& work) const {
  const ProofLayout layout(work);
  const ProofMemory memory(layout.bytes(), stream);
  if (!memory.data()) return std::nullopt;
  const OperationGraph graph({.cudnn = functions, .handle = handle}, layout.at(memory.data()));
  const Descriptor operands = graph.operands(workspace);
  fill_inputs(layout, memory.data(), stream);
  return always_the_same([&]() -> std::optional<std::vector<std::byte>> {
    if (!start(plan, layout.at(memory.data()), operands)) return std::nullopt;
    return bytes_at(memory.data() + layout.results_begin(), layout.results_bytes(), stream, kProof);
  });
}

// nullopt: likewise, or cuDNN has nothing to compare with.
std::optional<bool> Cudnn::agrees_with_cudnn(const Plan& plan, const Convolution& work, const std::string& key) {
  const ProofLayout layout(work);
  const std::uint64_t results = layout.results_bytes(), excess_bytes = Compare<float>::kThreads * sizeof(float);
  const ProofMemory memory(layout.bytes() + results + excess_bytes, stream);
  if (!memory.data()) return std::nullopt;
  const Convolution here = layout.at(memory.data());
  const Convolution beside = layout.at(memory.data(), memory.data() + layout.bytes());
  Convolution alone = beside;
  alone.moments = nullptr;
  std::byte* const excess = memory.data() + layout.bytes() + results;
  fill_inputs(layout, memory.data(), stream);

  const auto differ = [&]<typename T>(const T* left, const T* right, std::int64_t size, const Tolerance& tolerance) {
    check(launch(Compare<T>{left, right, size, tolerance, reinterpret_cast<float*>(excess)}, stream),
          "a comparison of results");
    return std::ranges::any_of(bytes_at(excess, excess_bytes, stream, kProof),
                               [](std::byte byte) { return byte != std::byte{}; });
  };
  const auto results_differ = [&](const Tolerance& tolerance) {
    bool found = false;
    with_type(work.dtype, [&]<typename T>(T) {
      found = differ(static_cast<const T*>(here.result), static_cast<const T*>(beside.result), layout.result_values(),
                     tolerance);
    });
    return found;
  };
  const auto moments_differ = [&](const Tolerance& tolerance) {
    return work.moments && differ(here.moments, beside.moments, 2 * std::int64_t{work.shape.out}, tolerance);
  };
  // Where a result is left out stands no number.
  const auto forget = [&](const Convolution& of) {
    check(cudaMemsetAsync(of.result, 0xff, results, stream), "clearing memory for a proof");
  };

  const auto agrees = [&] {
    const ProductShape shape = product_of(work).value();
    forget(here);
    if (!start_own(plan, here)) return false;
    if (results_differ(proof_tolerance(work.dtype, shape.k))) return false;
    forget(beside);
    if (!start_own(plan, beside)) return false;
    if (results_differ({}) || moments_differ({})) return false;
    if (!work.moments) return true;
    forget(beside);
    with_type(work.dtype, [&]<typename T>(T) {
      const ColumnMoments<T> defined{static_cast<const T*>(here.result), beside.moments, shape.m, shape.n};
      check(launch(defined, stream), "moments for a proof");
    });
    return !moments_differ(moments_tolerance(shape.k, shape.m));
  };

  forget(beside);
  if (!result_of_cudnn(alone)) return std::nullopt;
  check(cudaStreamSynchronize(stream), kProof);  // a failure of cuDNN, or of earlier work, is none of this engine
  // What ends this process in the middle of the proof is no proof: by a signal, which leaves the mark, or by an error.
  begin_proof(key, plan);
  try {
    return agrees();
  } catch (const OutOfDeviceMemory&) {
    drop_proof(key, plan);
    return std::nullopt;
  } catch (const Error&) {
    keep(key, plan, false);
    throw;
  }
}

bool Cudnn::result_of_cudnn(const Convolution& work) {
  EngineRules of_cudnn = rules;
  of_cudnn.own = OwnEngines::never;
  Plans plans({.cudnn = functions, .handle = handle}, work, of_cudnn, {});
  const Descriptor operands = plans.graph().operands(workspace);
  OwnRefused none;
  while (const std::optional<Plan> plan = next(plans, work, none)) {
    if (start(*plan, work, operands)) return true;
  }
  return false;
}

CudnnConvolution::CudnnConvolution(Cudnn& cudnn, const Convolution& work)
    : cudnn_(cudnn),
      work_(work),
      key_(work_key(work, cudnn.rules)),
      kept_(cudnn.store.find(key_)),
      plans_({.cudnn = cudnn.functions, .handle = cudnn.handle}, work, cudnn.rules, kept_),
      operands_(plans_.graph().operands(cudnn.workspace)),
      plan_(!kept_.empty() || cudnn.plans_to_time == 0 ? cudnn_.next(plans_, work_, own_refused_) : fastest()) {}

bool CudnnConvolution::run() {
  while (plan_) {
    if (cudnn_.start(*plan_, work_, operands_)) {
      if (!std::exchange(settled_, true)) plans_.forget();
      return true;
    }
    if (settled_) throw Error(fmt::format("{} does not compute a convolution any more", plan_->engine.name));
    plan_ = cudnn_.next(plans_, work_, own_refused_);
  }
  return false;
}

std::optional<Plan> CudnnConvolution::fastest() {
  std::vector<Plan> plans, own;
  std::vector<double> seconds, own_seconds;
  while (static_cast<int>(plans.size()) < cudnn_.plans_to_time) {
    std::optional<Plan> plan = cudnn_.next(plans_, work_, own_refused_);
    if (!plan) break;
    const std::optional<double> time = seconds_of(*plan);
    if (!time) continue;
    (plan->engine.own ? own_seconds : seconds).push_back(*time);
    (plan->engine.own ? own : plans).push_back(std::move(*plan));
  }
  // dtrain's own come last: they must be clearly faster.
  seconds.insert(seconds.end(), own_seconds.begin(), own_seconds.end());
  for (Plan& plan : own) plans.push_back(std::move(plan));
  if (plans.empty()) return std::nullopt;
  const std::size_t fastest = clearly_fastest(seconds);
  Plan& best = plans[fastest];
  if (!own.empty() && !best.engine.own) {
    own_refused_.why = fmt::format("{} takes {:.3g} s and {} {:.3g} s", own.front().engine.name, own_seconds.front(),
                                   best.engine.name, seconds[fastest]);
  }
  cudnn_.store.keep(key_, best.engine.name);
  return std::move(best);
}

// The shortest of a few measurements, of several runs each: the first run loads what the engine needs. nullopt: it
// cannot be run.
std::optional<double> CudnnConvolution::seconds_of(const Plan& plan) const {
  constexpr int kMeasurements = 3, kRuns = 8;
  if (!cudnn_.start(plan, work_, operands_)) return std::nullopt;
  std::vector<double> seconds;
  for (int k = 0; k < kMeasurements; ++k) {
    const Clock::time_point begin = when_done(cudnn_.stream);
    for (int run = 0; run < kRuns; ++run) cudnn_.start(plan, work_, operands_);
    seconds.push_back(std::chrono::duration<double>(when_done(cudnn_.stream) - begin).count() / kRuns);
  }
  return std::ranges::min(seconds);
}

}  // namespace dtrain::backend::cuda
