// How a device does what it recorded: for benchmarks, and for warnings where it is much slower than it should be. Pure.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/json.hpp>

#include "call.hpp"

namespace dtrain::backend::cuda {

struct ConvolutionFacts {
  std::string name;  // the call's
  Direction direction = Direction::forward;
  std::string engine;         // EngineFacts::name; empty: it is computed by its definition
  std::string own_refused{};  // why dtrain's own engine, which was asked for, does not compute it; else empty
  bool own_failed = false;    // that is a fault, and not that cuDNN is as fast
};

struct RecordingFacts {
  bool settled = false;     // it was run so often that its way of running stays as it is
  bool one_launch = false;  // it is a graph that was captured
  std::string refusal{};    // why it was not captured
  std::vector<ConvolutionFacts> convolutions{};
  // Calls whose native kernels did not start or left another result, each with the reason: definitions compute them.
  std::vector<std::string> refused_kernels{};
};

// {"recorded", "by_definition": number of convolutions, "convolutions": [{"op", "direction", "engine"}],
// "refused_kernels"}; "recorded" and "engine" are null where the way is not settled, or there is no engine. A
// convolution also says "own_refused" where there is a reason.
Json json_of(const RecordingFacts& facts);

// One sentence for each thing that makes a settled recording slow.
std::vector<std::string> warnings_of(const RecordingFacts& facts);

}  // namespace dtrain::backend::cuda
