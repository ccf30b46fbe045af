// What cuDNN would do on a GPU that is not here but only described. So what is made for a kind of GPU can be checked on
// any machine that has cuDNN. Its answers differ from those on the real one in two ways: without the driver's library
// (libcuda.so.1, or a stand-in that was loaded before) it names no engine that it compiles at run time; and the
// description has no number of GPU processing clusters, so that it names no variant for clusters.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "call.hpp"
#include "engine_rules.hpp"

namespace dtrain::backend::cuda {

class DescribedGpu {
 public:
  struct Choice {
    EngineFacts engine;
    std::uint64_t workspace = 0;  // bytes
  };
  virtual ~DescribedGpu() = default;
  // Everything that cuDNN names for it, best first.
  virtual std::vector<EngineFacts> engines(const Convolution& work) const = 0;
  // What the device would take, with the engine `preferred` kept in a PlanStore; nullopt: it would compute it by
  // definition.
  virtual std::optional<Choice> choice(const Convolution& work, const EngineRules& rules,
                                       const std::string& preferred) const = 0;
};

// `properties`: JSON in cuDNN's words, which version 9.8 and newer understand. Throws Error where cuDNN does not accept
// it; nullptr: this dtrain was built without CUDA.
std::unique_ptr<DescribedGpu> describe_gpu(const std::string& cudnn, const std::string& properties);

}  // namespace dtrain::backend::cuda
