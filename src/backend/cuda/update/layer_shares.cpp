#include "layer_shares.hpp"

#include <algorithm>
#include <vector>

#include <dtrain/nn/parameter_groups.hpp>

namespace dtrain::backend::cuda {

LayerShares::LayerShares(Device& device, const nn::Graph& graph)
    : device_(device),
      graph_(graph),
      memory_(device, static_cast<std::uint64_t>(graph.parameter_count) * sizeof(float)) {}

const float* LayerShares::of(float decay) {
  if (decay != decay_) {
    const std::vector<float> by_tensor = nn::layer_shares(graph_, decay);
    std::vector<float> all(static_cast<std::size_t>(graph_.parameter_count));
    for (std::size_t tensor = 0; tensor < by_tensor.size(); ++tensor) {
      const nn::TensorView& view = graph_.parameters[tensor];
      std::fill_n(all.begin() + view.offset, view.size, by_tensor[tensor]);
    }
    if (!all.empty()) device_.upload(memory_.data(), all.data(), all.size() * sizeof(float));
    decay_ = decay;
  }
  return reinterpret_cast<const float*>(memory_.data());
}

}  // namespace dtrain::backend::cuda
