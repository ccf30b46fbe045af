// One shard of the parameters, and the optimizer that moves it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>

#include <dtrain/comm/communicator.hpp>
#include <dtrain/train/parameter_servers.hpp>

#include "shard_layout.hpp"

namespace dtrain::train {

// One thread at a time. The updates are those of a backend's Executable, compiled of a graph in which all other layers
// are frozen.
class ParameterShard {
 public:
  // `leaves`: parts of which the gradients of a batch are the sum, by the tree of comm/tree.hpp. `layout` must outlive
  // this.
  ParameterShard(const ShardLayout& layout, const ParameterServers& servers, const nn::Optimizer& rule, int leaves,
                 backend::ModelState state);

  // Floats [first, first + values.size()) of a leaf of the batch `number`. Gives what was counted once the batch is
  // complete and applied. Throws DataError for floats that cannot be.
  struct Part {
    std::uint64_t number = 0;
    int leaf = 0;
    std::int64_t first = 0;
    float learning_rate = 0;
  };
  std::optional<backend::StepMetrics> take(const Part& part, std::span<const float> values);
  // The sum of a batch, as last_sum() of another copy of this shard gave it.
  backend::StepMetrics apply(std::span<const float> sum, float learning_rate);
  std::span<const float> last_sum() const { return sum_; }

  std::uint64_t version() const { return version_; }  // updates since this shard was made
  // From now on the shard knows what it was before its last update.
  void keep_previous() { keeps_previous_ = true; }
  // As floats_of_shard(): now, or before the last update.
  std::vector<float> floats() const { return floats_of_shard(layout_, executable_->state()); }
  const std::vector<float>& previous() const { return previous_; }
  const backend::ModelState& state() const { return executable_->state(); }
  const ShardLayout& layout() const { return layout_; }

 private:
  struct Gathering {
    std::unique_ptr<comm::Communicator> alone;
    std::unique_ptr<comm::Reduction> reduction;
    std::map<int, std::span<float>> leaves;
    std::map<int, std::int64_t> missing;  // floats, of the leaves that came in part
    int missing_leaves = 0;
  };
  Gathering& gathering(std::uint64_t number);

  const ShardLayout& layout_;
  const nn::Optimizer rule_;
  const int leaves_;
  std::unique_ptr<backend::Executable> executable_;
  std::map<std::uint64_t, Gathering> gatherings_;
  comm::FloatBuffer sum_;            // of the shard
  std::vector<float> contribution_;  // of the whole graph
  std::uint64_t version_ = 0;
  bool keeps_previous_ = false;
  std::vector<float> previous_;
};

}  // namespace dtrain::train
