// Convolutions as cuDNN computes them on a stream.
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <string>

#include "../plans/plan_store.hpp"
#include "plans.hpp"

namespace dtrain::backend::cuda {

// A handle on a stream, with the memory that engines may use, and how they are chosen.
class Cudnn {
 public:
  // `plans_to_time`: see CudaOptions.
  Cudnn(const CudnnFunctions& functions, cudaStream_t stream, void* workspace, const EngineRules& rules,
        int plans_to_time, PlanStore store);
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  bool has_plan_for(const Convolution& work);
  // The next of the plans for `work` that may be used. One that needs_proof() is run for it, once on this kind of GPU.
  std::optional<Plan> next(Plans& plans, const Convolution& work);

  const CudnnFunctions& functions;
  cudnnHandle_t handle = nullptr;
  const cudaStream_t stream;
  void* const workspace;
  const EngineRules rules;
  const int plans_to_time;
  PlanStore store;

 private:
  bool is_proven(const Plan& plan, const Convolution& work);
  std::optional<bool> gives_the_same_bits(const Plan& plan, const Convolution& work) const;
};

// One convolution with its plan. `cudnn` must outlive it.
class CudnnConvolution {
 public:
  // Where plans are timed, this computes `work` several times.
  CudnnConvolution(Cudnn& cudnn, const Convolution& work);
  // False: no plan is left that works, compute it by definition. The first call settles which plan is used.
  bool run();
  const std::string& engine() const { return plan_->engine.name; }  // while a plan is left

 private:
  // Measures the first ones, all computed; kept for later runs.
  std::optional<Plan> fastest();
  std::optional<double> seconds_of(const Plan& plan) const;
  cudnnStatus_t start(const Plan& plan) const;

  Cudnn& cudnn_;
  const Convolution work_;
  const std::string key_;
  const std::string kept_;  // the engine that an earlier run found to be the fastest; empty: none did
  Plans plans_;
  const Descriptor operands_;
  std::optional<Plan> plan_;
  bool settled_ = false;
};

}  // namespace dtrain::backend::cuda
