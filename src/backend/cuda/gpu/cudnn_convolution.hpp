// Convolutions as cuDNN, or a kernel of dtrain's own, computes them on a stream.
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <string>

#include "../plans/plan_store.hpp"
#include "plans.hpp"

namespace dtrain::backend::cuda {

// Why no engine of dtrain's own is taken; see ConvolutionFacts.
struct OwnRefused {
  std::string why{};
  bool failed = false;
};

// A handle on a stream, with the memory that engines may use, and how they are chosen.
class Cudnn {
 public:
  // `plans_to_time`: see CudaOptions.
  Cudnn(const CudnnFunctions& functions, cudaStream_t stream, void* workspace, const EngineRules& rules,
        int plans_to_time, PlanStore store);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  // Whether there is a plan for what is fused. One of dtrain's own is looked for where an earlier run chose it; or
  // where the rules have all of them and, if plans are timed, the convolution alone was the fastest by one of dtrain's
  // own.
  bool fuses(const Convolution& work);
  // The next of the plans for `work` that may be used. One that needs_proof() is run for it, once on this kind of GPU.
  // `own_refused` becomes the reason why one of dtrain's own may not.
  std::optional<Plan> next(Plans& plans, const Convolution& work, OwnRefused& own_refused);
  // False: the plan cannot compute the work, and nothing was done. `operands` are those of cuDNN's graph of the work.
  bool start(const Plan& plan, const Convolution& work, const Descriptor& operands) const;

  const CudnnFunctions& functions;
  cudnnHandle_t handle = nullptr;
  const cudaStream_t stream;
  void* const workspace;
  const EngineRules rules;
  const int plans_to_time;
  PlanStore store;

 private:
  enum class Proof { passed, failed, not_tried };
  Proof proof(const Plan& plan, const Convolution& work);
  void begin_proof(const std::string& key, const Plan& plan);
  void drop_proof(const std::string& key, const Plan& plan);
  void keep(const std::string& key, const Plan& plan, bool proven);
  std::optional<bool> gives_the_same_bits(const Plan& plan, const Convolution& work) const;
  bool start_own(const Plan& plan, const Convolution& work) const;
  // Whether it gives about the numbers of cuDNN's first plan, and the same ones twice.
  std::optional<bool> agrees_with_cudnn(const Plan& plan, const Convolution& work, const std::string& key);
  bool result_of_cudnn(const Convolution& work);  // false: it has no plan
};

// One convolution with its plan. `cudnn` must outlive it.
class CudnnConvolution {
 public:
  // Where plans are timed, this computes `work` several times.
  CudnnConvolution(Cudnn& cudnn, const Convolution& work);
  // False: no plan is left that works, compute it by definition. The first call settles which plan is used.
  bool run();
  const std::string& engine() const { return plan_->engine.name; }  // while a plan is left
  OwnRefused own_refused() const { return plan_->engine.own ? OwnRefused{} : own_refused_; }

 private:
  // Measures the first ones, all computed; kept for later runs.
  std::optional<Plan> fastest();
  std::optional<double> seconds_of(const Plan& plan) const;

  Cudnn& cudnn_;
  const Convolution work_;
  const std::string key_;
  const std::string kept_;  // the engine that an earlier run found to be the fastest; empty: none did
  OwnRefused own_refused_;
  Plans plans_;
  const Descriptor operands_;
  std::optional<Plan> plan_;
  bool settled_ = false;
};

}  // namespace dtrain::backend::cuda
