// How much of the learning rate each parameter gets under --layer-decay, on a GPU.
#pragma once

#include "../device.hpp"

namespace dtrain::backend::cuda {

// Reserves a float per parameter at once. The device and the graph must outlive this.
class LayerShares {
 public:
  LayerShares(Device& device, const nn::Graph& graph);
  // Per parameter: nn::layer_shares(). Uploaded when `decay` is another one than before.
  const float* of(float decay);
  std::uint64_t bytes() const { return memory_.size(); }

 private:
  Device& device_;
  const nn::Graph& graph_;
  DeviceMemory memory_;
  float decay_ = 0;  // of the shares in memory_; 0: none are there yet
};

}  // namespace dtrain::backend::cuda
