// How a convolution is computed: the engines of dtrain and those that cuDNN names for its operation graph, and the plan
// that is taken.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "../engine_rules.hpp"
#include "operation_graph.hpp"

namespace dtrain::backend::cuda {

// An engine that was made ready for a graph. dtrain's own need nothing for that.
struct Plan {
  EngineFacts engine;
  std::optional<Descriptor> plan;  // of cuDNN
  std::uint64_t workspace = 0;     // bytes
};

// The ways in which a convolution can be computed: the preferred engine, then dtrain's own where the rules have them,
// then what cuDNN's heuristics name for the shape, best first. They depend on shape, GPU and version alone.
class Plans {
 public:
  Plans(const CudnnTarget& target, const Convolution& work, const EngineRules& rules, const std::string& preferred);
  const std::vector<EngineFacts>& engines() const { return facts_; }
  // The next one that may compute the work and is made ready; nullopt: there is none left.
  std::optional<Plan> next();
  const OperationGraph& graph() const { return graph_; }
  // Frees what only next() needs.
  void forget();

 private:
  void ask(cudnnBackendHeurMode_t mode);
  std::optional<Plan> make(std::size_t engine) const;

  const CudnnTarget target_;
  const OperationGraph graph_;
  const Convolution work_;
  const std::uint64_t most_workspace_;
  std::vector<EngineFacts> facts_;   // of dtrain's own engines, then of cuDNN's
  std::vector<Descriptor> engines_;  // cuDNN's
  std::vector<std::size_t> order_;
  std::size_t tried_ = 0;
};

}  // namespace dtrain::backend::cuda
