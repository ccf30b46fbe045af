// A model's state as named tensors, in the one order in which they are stored and hashed: parameters, statistics, then
// each optimizer slot as optimizer/0/NAME, optimizer/1/NAME.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <dtrain/train/checkpoint.hpp>

#include "safetensors.hpp"

namespace dtrain::train {

// Borrow from `state`, whose sizes are DTRAIN_CHECKed against the graph's.
std::vector<NamedTensor> weight_tensors(const nn::Graph& graph, const backend::ModelState& state);  // no optimizer
std::vector<NamedTensor> state_tensors(const nn::Graph& graph, const backend::ModelState& state);

struct TensorHash {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string sha256;  // of the float32 values, little-endian
};
std::vector<TensorHash> hash_tensors(std::span<const NamedTensor> tensors);

// Hashes of hashes, so that one pass over the data gives all of them and a manifest is enough to recompute them. Both
// are the SHA-256 of text, a line "NAME [EXTENTS] SHA256\n" for each tensor in the order above, e.g. "fc1_bias [10]
// 5feceb66..."; for the state also "updates N\n" and "epoch N step N samples_seen N\n".
std::string hash_of_weights(std::span<const TensorHash> parameters);
std::string hash_of_state(std::span<const TensorHash> tensors, std::uint64_t updates, const Cursor& cursor);

}  // namespace dtrain::train
