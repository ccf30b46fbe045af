// A model's state as named tensors, in the one order in which they are stored and hashed: parameters, statistics, then
// each optimizer slot as optimizer/0/NAME, optimizer/1/NAME, then the average of parameters and statistics as
// average/NAME.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/train/checkpoint.hpp>

#include "safetensors.hpp"

namespace dtrain::train {

inline constexpr const char* kOptimizerTensors = "optimizer/";  // what the names of optimizer slots begin with
inline constexpr const char* kAverageTensors = "average/";      // and those of an average of weights

// Borrow from `state`, whose sizes are DTRAIN_CHECKed against the graph's.
std::vector<NamedTensor> weight_tensors(const nn::Graph& graph, const backend::ModelState& state);  // no optimizer
std::vector<NamedTensor> state_tensors(const nn::Graph& graph, const backend::ModelState& state);

// What a state holds beside the weights.
struct StateParts {
  std::size_t slots = 0;  // of the optimizer
  bool averaged = false;
};
// The names and shapes of state_tensors() for a state with these parts, without values: takes no room for them.
std::vector<NamedTensor> state_layout(const nn::Graph& graph, const StateParts& parts);

struct TensorHash {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string sha256;  // of the float32 values, little-endian
};
std::vector<TensorHash> hash_tensors(std::span<const NamedTensor> tensors);

// Hashes of hashes, so that one pass over the data gives all of them and a manifest is enough to recompute them. Both
// are the SHA-256 of text, a line "NAME [EXTENTS] SHA256\n" for each tensor in the order above, e.g. "fc1_bias [10]
// 5feceb66..."; for the state also "updates N\n", "epoch N step N samples_seen N\n" and, where there is a loss scale,
// "loss_scale VALUE good_steps N\n", e.g. "loss_scale 1024 good_steps 17".
std::string hash_of_weights(std::span<const TensorHash> parameters);
std::string hash_of_state(std::span<const TensorHash> tensors, std::uint64_t updates, const Cursor& cursor,
                          const std::optional<backend::LossScale>& loss_scale);

// For a model trained in float16; other dtypes have none.
std::optional<backend::LossScale> loss_scale_of(const Checkpoint& checkpoint);

}  // namespace dtrain::train
