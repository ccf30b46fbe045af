#include "torch_name.hpp"

namespace dtrain::train {

const char* torch_ending(const nn::Node& node, const nn::TensorView& view) {
  if (view.name == node.name) return "";
  switch (view.role) {
    case nn::TensorRole::weight:
    case nn::TensorRole::gamma:
      return ".weight";
    case nn::TensorRole::bias:
    case nn::TensorRole::beta:
      return ".bias";
    case nn::TensorRole::running_mean:
      return ".running_mean";
    case nn::TensorRole::running_variance:
      break;
  }
  return ".running_var";
}

std::string torch_name(const nn::Node& node, const nn::TensorView& view) {
  // torch.nn.MultiheadAttention holds the tensors of this product itself: in_proj_weight, in_proj_bias.
  if (node.name.ends_with(".in_proj")) return view.name;
  return node.name + torch_ending(node, view);
}

}  // namespace dtrain::train
