// Which parameters a server has: whole layers, because rules such as lamb and muon look at whole tensors.
#pragma once

#include <span>
#include <vector>

#include <dtrain/backend/backend.hpp>

namespace dtrain::train {

struct ShardLayout {
  std::vector<FloatRange> parameters, statistics;  // ranges of the flat buffers, ascending and not adjacent
  std::int64_t parameter_count = 0, statistic_count = 0;
  nn::Graph graph;  // the network, in which only this shard's layers learn

  // A contribution of the shard: its gradients, its batch statistics, then the metrics of ContributionLayout.
  std::int64_t contribution_size() const;
  // Contributions of the whole graph to those of the shard and back; what is not of the shard stays as it is.
  void pack(std::span<const float> contribution, std::span<float> packed) const;
  void unpack(std::span<const float> packed, std::span<float> contribution) const;
};

// Neighbouring layers, about equally many floats for each server. A network of few layers may leave servers without.
std::vector<ShardLayout> cut_into_shards(const nn::Graph& graph, int servers);

// What a shard's server holds of a state, as one row of floats.
std::vector<float> floats_of_shard(const ShardLayout& layout, const backend::ModelState& state);
// Their number where a state has so many optimizer slots and an average or none.
std::size_t shard_floats(const ShardLayout& layout, std::size_t slots, bool average);
void put_shard(const ShardLayout& layout, std::span<const float> floats, backend::ModelState& state);

}  // namespace dtrain::train
