#include <dtrain/nn/parameter_groups.hpp>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include <dtrain/base/text.hpp>

namespace dtrain::nn {
namespace {

int weight_of(const Node& node) { return node.parameters.front(); }

// Twice the input, twice the output.
bool keeps_factors(const Layer& layer) {
  const auto* activation = std::get_if<Activation>(&layer);
  return (activation && activation->kind == ActivationKind::relu) || std::holds_alternative<Pooling>(layer) ||
         std::holds_alternative<Flatten>(layer) || std::holds_alternative<Dropout>(layer);
}

// Whether a factor on the node's output is lost in batch norms, whichever way it goes.
bool only_norms_follow(const Graph& graph, int node) {
  for (int next = node + 1; next < static_cast<int>(graph.nodes.size()); ++next) {
    const Node& reader = graph.nodes[static_cast<std::size_t>(next)];
    if (std::ranges::find(reader.inputs, node) == reader.inputs.end()) continue;
    if (std::holds_alternative<BatchNorm>(reader.layer)) continue;
    if (!keeps_factors(reader.layer) || !only_norms_follow(graph, next)) return false;
  }
  return true;
}

void add_matrices(const Graph& graph, int index, std::vector<WeightMatrix>& matrices) {
  const Node& node = graph.nodes[static_cast<std::size_t>(index)];
  const TensorView& weight = graph.parameters[static_cast<std::size_t>(weight_of(node))];
  const auto* convolution = std::get_if<Convolution>(&node.layer);
  const int groups = convolution ? convolution->groups : 1;
  const std::int64_t rows = weight.shape.front() / groups, columns = weight.size / weight.shape.front();
  const bool scale_free = node.parameters.size() == 1 && only_norms_follow(graph, index);
  for (int group = 0; group < groups; ++group) {
    matrices.push_back({weight.offset + group * rows * columns, static_cast<std::int32_t>(rows),
                        static_cast<std::int32_t>(columns), scale_free});
  }
}

bool ends_in_digit(const std::string& part) { return !part.empty() && part.back() >= '0' && part.back() <= '9'; }

// "layer1.0" of "layer1.0.conv2", "stage1_unit2" of "stage1_unit2_conv1", "conv1" of "conv1": up to the first run of
// numbered parts, where something stands behind it.
std::string block_of(const std::string& node) {
  const char separator = node.find('.') == node.npos ? '_' : '.';
  const std::vector<std::string> parts = split(node, separator);
  std::size_t length = 0;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (ends_in_digit(parts[i])) length = i + 1;
    if (length > 0 && length != i + 1) break;
  }
  if (length == 0) return node;
  return join(std::span(parts).first(length), std::string_view(&separator, 1));
}

}  // namespace

bool has_weight(const Node& node) {
  return std::holds_alternative<Convolution>(node.layer) || std::holds_alternative<Dense>(node.layer);
}

std::vector<ParameterGroup> parameter_groups(const Graph& graph) {
  std::vector<ParameterGroup> groups;
  for (const TensorView& view : graph.parameters) {
    groups.push_back(view.role == TensorRole::weight ? ParameterGroup::matrix : ParameterGroup::vector);
  }
  const auto head = std::find_if(graph.nodes.rbegin(), graph.nodes.rend(), has_weight);
  if (head != graph.nodes.rend()) groups[static_cast<std::size_t>(weight_of(*head))] = ParameterGroup::head;
  return groups;
}

float lr_factor(const Optimizer& rule, ParameterGroup group) {
  if (group == ParameterGroup::head) return rule.head_lr_factor;
  return group == ParameterGroup::vector ? rule.bias_lr_factor : 1;
}

std::vector<float> layer_shares(const Graph& graph, float decay) {
  std::vector<float> shares(graph.parameters.size(), 1);
  if (decay == 1) return shares;
  std::vector<int> block_of_node;
  std::map<std::string, int> blocks;
  int block = 0;  // what has no weight of its own belongs to the block before it
  for (const Node& node : graph.nodes) {
    if (has_weight(node))
      block = blocks.try_emplace(block_of(node.name), static_cast<int>(blocks.size())).first->second;
    block_of_node.push_back(block);
  }
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    float share = 1;
    for (int left = static_cast<int>(blocks.size()) - 1 - block_of_node[node]; left > 0; --left) share *= decay;
    for (const int tensor : graph.nodes[node].parameters) shares[static_cast<std::size_t>(tensor)] = share;
  }
  return shares;
}

std::vector<WeightMatrix> weight_matrices(const Graph& graph) {
  const std::vector<ParameterGroup> groups = parameter_groups(graph);
  std::vector<WeightMatrix> matrices;
  for (int index = 0; index < static_cast<int>(graph.nodes.size()); ++index) {
    const Node& node = graph.nodes[static_cast<std::size_t>(index)];
    if (!has_weight(node) || is_held(node, 0)) continue;
    if (groups[static_cast<std::size_t>(weight_of(node))] != ParameterGroup::matrix) continue;
    add_matrices(graph, index, matrices);
  }
  return matrices;
}

}  // namespace dtrain::nn
