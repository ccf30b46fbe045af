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

// Whether a factor on the node's output is lost in batch norms, whichever way it goes. A frozen one computes with its
// running statistics, which do not follow the factor.
bool only_norms_follow(const Graph& graph, int node) {
  for (int next = node + 1; next < static_cast<int>(graph.nodes.size()); ++next) {
    const Node& reader = graph.nodes[static_cast<std::size_t>(next)];
    if (std::ranges::find(reader.inputs, node) == reader.inputs.end()) continue;
    const bool learns = reader.learns || reader.learns_elsewhere;
    if (std::holds_alternative<BatchNorm>(reader.layer) && learns) continue;
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

// Modules of Inception v3 and of GoogLeNet: their branches lie side by side, so none of them is a block of its own.
constexpr std::string_view kModules[] = {"Mixed_", "inception"};

// "layer1.0" of "layer1.0.conv2", "stage1_unit2" of "stage1_unit2_conv1", "conv1" of "conv1": up to the first run of
// numbered parts, where something stands behind it. "Mixed_5b" of "Mixed_5b.branch5x5_1.conv".
std::string block_by_number(const std::string& node) {
  const std::size_t dot = node.find('.');
  const char separator = dot == node.npos ? '_' : '.';
  const bool in_module = std::ranges::any_of(kModules, [&](std::string_view name) { return node.starts_with(name); });
  if (in_module && dot != node.npos) return node.substr(0, dot);
  const std::vector<std::string> parts = split(node, separator);
  std::size_t length = 0;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    if (ends_in_digit(parts[i])) length = i + 1;
    if (length > 0 && length != i + 1) break;
  }
  if (length == 0) return node;
  return join(std::span(parts).first(length), std::string_view(&separator, 1));
}

// The branches of a detector's pyramid lie side by side, and so do its heads behind them.
constexpr std::string_view kPyramid = "backbone.fpn.", kHeadsOfDetector[] = {"rpn.", "roi_heads.", "head."};

std::string block_of(const std::string& node, bool is_of_detector) {
  const auto is_in = [&](std::string_view module) { return node.starts_with(module); };
  if (is_of_detector && is_in(kPyramid)) return "pyramid";
  if (is_of_detector && std::ranges::any_of(kHeadsOfDetector, is_in)) return "heads";
  return block_by_number(node);
}

bool holds_weight(const Graph& graph, const Node& node) {
  return std::ranges::any_of(node.parameters, [&](int index) {
    return graph.parameters[static_cast<std::size_t>(index)].role == TensorRole::weight;
  });
}

// Of each node the number of its block, from the images on. A norm may stand before the first weight of its block; what
// has no block by its name belongs to the weight before it.
std::vector<int> blocks_of_nodes(const Graph& graph) {
  const bool detects = !graph.nodes.empty() && detection_of(graph);
  std::map<std::string, int> blocks;
  for (const Node& node : graph.nodes) {
    if (has_weight(node)) blocks.try_emplace(block_of(node.name, detects), static_cast<int>(blocks.size()));
  }
  std::vector<int> of_nodes;
  int last = 0;
  for (const Node& node : graph.nodes) {
    const auto own = blocks.find(block_of(node.name, detects));
    if (own != blocks.end() && has_weight(node)) last = own->second;
    of_nodes.push_back(own != blocks.end() ? own->second : last);
  }
  return of_nodes;
}

}  // namespace

bool has_weight(const Node& node) {
  return std::holds_alternative<Convolution>(node.layer) || std::holds_alternative<Dense>(node.layer);
}

std::vector<const Node*> heads_of(const Graph& graph) {
  if (graph.nodes.empty()) return {};
  const Node& loss = graph.nodes.back();
  const auto input = [&](std::size_t which) { return &graph.nodes[static_cast<std::size_t>(loss.inputs[which])]; };
  if (std::holds_alternative<DetectionLoss>(loss.layer)) return {input(0)};
  if (const auto* regions = std::get_if<RegionLoss>(&loss.layer)) {
    std::vector<const Node*> heads{input(3), input(4)};
    if (regions->found.mask > 0) heads.push_back(input(6));
    return heads;
  }
  // The last weight, and what has as many channels behind it, such as a batch norm.
  std::vector<const Node*> heads;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (!node->parameters.empty()) heads.push_back(&*node);
    if (holds_weight(graph, *node)) break;
  }
  return heads;
}

std::vector<ParameterGroup> parameter_groups(const Graph& graph) {
  std::vector<ParameterGroup> groups;
  for (const TensorView& view : graph.parameters) {
    groups.push_back(view.role == TensorRole::weight ? ParameterGroup::weight : ParameterGroup::vector);
  }
  for (const Node& node : graph.nodes) {
    if (has_weight(node)) groups[static_cast<std::size_t>(weight_of(node))] = ParameterGroup::matrix;
  }
  for (const Node* head : heads_of(graph)) {
    if (has_weight(*head)) groups[static_cast<std::size_t>(weight_of(*head))] = ParameterGroup::head;
  }
  return groups;
}

float lr_factor(const Optimizer& rule, ParameterGroup group) {
  if (group == ParameterGroup::head) return rule.head_lr_factor;
  return group == ParameterGroup::vector ? rule.bias_lr_factor : 1;
}

float decay_of(const Optimizer& rule, const TensorView& tensor) {
  const bool decays = rule.kind == OptimizerKind::lamb ? tensor.role == TensorRole::weight : tensor.decays();
  return decays ? rule.weight_decay : 0;
}

std::vector<float> layer_shares(const Graph& graph, float decay) {
  std::vector<float> shares(graph.parameters.size(), 1);
  if (decay == 1) return shares;
  const std::vector<int> blocks = blocks_of_nodes(graph);
  const int last = blocks.empty() ? 0 : *std::ranges::max_element(blocks);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    float share = 1;
    for (int left = last - blocks[node]; left > 0; --left) share *= decay;
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
