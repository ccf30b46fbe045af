// What the stand-in for cuDNN knows: a test says so, by the function kKnow of the library. Without a word it knows no
// engine, and convolutions are computed by their definition.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace dtrain::testing::cuda_runtime {

struct CudnnEngine {
  std::int64_t number = 0;
  std::vector<std::pair<int, std::int64_t>> knobs = {};  // type, value
  bool made_at_run_time = false;
  bool refuses = false;  // when it is run
};

struct CudnnKnowledge {
  std::vector<CudnnEngine> engines = {};  // for any work, best first
  // Memory in the order in which it was described: forward x, weights, y.
  std::function<void(const CudnnEngine& engine, const std::vector<void*>& memory, cudaStream_t stream)> run = {};
};

constexpr const char* kKnow = "dtrain_cudnn_know";
using Know = void(const CudnnKnowledge* knowledge);  // null: nothing; else it must stay

}  // namespace dtrain::testing::cuda_runtime
