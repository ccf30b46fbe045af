#include <dtrain/train/weights.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/http.hpp>
#include <dtrain/nn/initialize.hpp>
#include <dtrain/nn/parameter_groups.hpp>

#include "checkpoint/torch_name.hpp"
#include "fit_weights.hpp"
#include "timm_names.hpp"
#include "weight_sets.hpp"
#include "weights_file.hpp"

namespace dtrain::train {
namespace {

constexpr std::size_t kMostListed = 6, kMostNamed = 3, kMostCompared = 4096;
// One tensor in so many may be missing: weights of another network have some names and shapes in common.
constexpr std::size_t kMostMissing = 10;

// A tensor of the network, under its names.
struct Wanted {
  const nn::TensorView* view = nullptr;
  std::string torch_name;
  std::string timm_name;  // or torch_name again
  // What the classifier calls it that is a detector's backbone, as dtrain and as PyTorch; or torch_name again.
  std::string backbone_view, backbone_name;
  std::array<const std::string*, 5> names() const {
    return {&view->name, &torch_name, &timm_name, &backbone_view, &backbone_name};
  }
  bool statistic = false;
  bool head = false;
  bool in_backbone() const { return backbone_name != torch_name; }
};

// Of a head of so many outputs.
int classes_of_outputs(const nn::Graph& graph, int outputs) {
  if (std::holds_alternative<nn::DetectionLoss>(graph.nodes.back().layer)) {
    return outputs / nn::DetectionLoss::kAnchors;
  }
  return nn::detection_of(graph) ? outputs - 1 : outputs;  // the second stage's first class is the background
}

// The weights, or the gammas that are held at 1, which are none.
std::vector<Wanted> wanted_tensors(const nn::Graph& graph, bool held = false) {
  const std::vector<const nn::Node*> heads = nn::heads_of(graph);
  const bool detects = nn::detection_of(graph) != nullptr;
  std::vector<Wanted> wanted;
  for (const nn::Node& node : graph.nodes) {
    const bool in_backbone = detects && node.name.starts_with(nn::kBackbonePrefix);
    const auto* batch_norm = std::get_if<nn::BatchNorm>(&node.layer);
    const std::optional<std::string> other_name = timm_name(graph.name, node.name);
    const auto add = [&](const nn::TensorView& view, bool statistic) {
      const bool is_held = batch_norm && batch_norm->fix_gamma && view.role == nn::TensorRole::gamma;
      if (is_held != held) return;
      const std::string torch = torch_name(node, view);
      wanted.push_back({.view = &view,
                        .torch_name = torch,
                        .timm_name = other_name.value_or(node.name) + torch_ending(node, view),
                        .backbone_view = in_backbone ? view.name.substr(nn::kBackbonePrefix.size()) : torch,
                        .backbone_name = in_backbone ? torch.substr(nn::kBackbonePrefix.size()) : torch,
                        .statistic = statistic,
                        .head = std::ranges::find(heads, &node) != heads.end()});
    };
    for (const int index : node.parameters) add(graph.parameters[static_cast<std::size_t>(index)], false);
    for (const int index : node.statistics) add(graph.statistics[static_cast<std::size_t>(index)], true);
  }
  return wanted;
}

std::unordered_set<std::string_view> names_of(const std::vector<Wanted>& wanted) {
  std::unordered_set<std::string_view> names;
  for (const Wanted& each : wanted) {
    for (const std::string* name : each.names()) names.insert(*name);
  }
  return names;
}

// The tensors behind the prefix by the rest of their names.
class Table {
 public:
  Table(const std::vector<Wanted>& wanted, const std::vector<ForeignTensor>& tensors) {
    const std::vector<WeightSet> sets = weight_sets(names_of(wanted), tensors);
    const std::string_view prefix = sets.empty() ? std::string_view() : sets.front().prefix;
    choice_ = choice_of_sets(sets);
    for (const ForeignTensor& tensor : tensors) {
      if (!tensor.name.starts_with(prefix)) continue;
      const std::string_view rest = std::string_view(tensor.name).substr(prefix.size());
      if (by_name_.emplace(rest, &tensor).second) order_.push_back(rest);
    }
  }

  const std::string& choice_of_set() const { return choice_; }

  const ForeignTensor* take(const Wanted& wanted) {
    const auto found = entry(wanted);
    if (found == by_name_.end()) return nullptr;
    taken_.insert(found->first);
    return found->second;
  }

  const ForeignTensor* find(const Wanted& wanted) const {
    const auto found = entry(wanted);
    return found == by_name_.end() ? nullptr : found->second;
  }

  // Not those of other things than weights, such as num_batches_tracked.
  std::vector<std::string> left_names() const {
    std::vector<std::string> names;
    for (const std::string_view name : order_) {
      if (!taken_.contains(name) && is_real(*by_name_.at(name))) names.emplace_back(name);
    }
    return names;
  }
  const ForeignTensor& at(const std::string& name) const { return *by_name_.at(name); }

 private:
  using ByName = std::unordered_map<std::string_view, const ForeignTensor*>;

  ByName::const_iterator entry(const Wanted& wanted) const {
    for (const std::string* name : wanted.names()) {
      if (const auto found = by_name_.find(*name); found != by_name_.end()) return found;
    }
    return by_name_.end();
  }

  std::string choice_;
  ByName by_name_;
  std::vector<std::string_view> order_;
  std::unordered_set<std::string_view> taken_;
};

std::string with_shape(std::string_view name, const std::vector<std::int64_t>& shape) {
  return fmt::format("{} [{}]", name, fmt::join(shape, ", "));
}

// What is nearest to the name of a tensor that the file lacks.
std::string nearest(const Wanted& wanted, const Table& table, const std::vector<std::string>& left) {
  if (left.size() > kMostCompared) return {};
  const auto found = nearest_name(wanted.torch_name, left);
  return found ? fmt::format(", the nearest is {}", with_shape(*found, table.at(*found).shape)) : std::string();
}

// Extents of 1 say nothing: a linear layer on each pixel is a convolution.
bool same_values(std::vector<std::int64_t> a, std::vector<std::int64_t> b) {
  std::erase(a, 1);
  std::erase(b, 1);
  return a == b;
}

std::string why_not(const Wanted& wanted, const ForeignTensor& tensor) {
  if (!same_values(tensor.shape, wanted.view->shape))
    return fmt::format("[{}] in the file", fmt::join(tensor.shape, ", "));
  return is_real(tensor) ? std::string() : fmt::format("{} in the file", tensor.dtype);
}

// Files of dtrain and MXNet hold the gammas that the network does not learn. One that is not 1 stays among the unused
// tensors: the network of the file computes something else.
void take_held_gammas(const nn::Graph& graph, Table& table) {
  constexpr float kMostAway = 1e-3f;  // of an average of ones, which is rounded at each step
  for (const Wanted& each : wanted_tensors(graph, true)) {
    const ForeignTensor* tensor = table.find(each);
    if (!tensor || !why_not(each, *tensor).empty()) continue;
    std::vector<float> values(static_cast<std::size_t>(each.view->size));
    copy_values(*tensor, values);
    if (std::ranges::all_of(values, [](float value) { return std::abs(value - 1) <= kMostAway; })) table.take(each);
  }
}

struct Missing {
  const Wanted* wanted;
  std::string why;  // empty: it is not in the file
};

std::vector<std::string> describe(const std::vector<Missing>& missing, const Table& table) {
  const std::vector<std::string> left = table.left_names();
  std::vector<std::string> lines;
  for (const auto& [wanted, why] : missing) {
    const bool compared = lines.size() < kMostListed;
    const std::string reason =
        why.empty() ? "not in the file" + (compared ? nearest(*wanted, table, left) : std::string()) : why;
    lines.push_back(fmt::format("{}: {}", with_shape(wanted->torch_name, wanted->view->shape), reason));
  }
  return lines;
}

[[noreturn]] void refuse(const Path& file, const nn::Graph& graph, const WeightsFit& fit) {
  std::vector<std::string> first = fit.missing;
  if (!fit.new_head.empty()) first.push_back(fit.new_head);
  const std::string unused = join_first(fit.unused, kMostNamed, ", ");
  throw DataError(
      fmt::format("{}: the weights of another network: {} of the {} tensors of {} are in it; not {}",
                  net::shown_url(file.string()), fit.fitted, fit.wanted, graph.name,
                  join_first(first, kMostListed, "; ")),
      fmt::format("{}choose their network with setting 'network', setting 'num-layers', setting 'width' and setting "
                  "'image-shape'",
                  unused.empty() ? "" : fmt::format("its other tensors are {}; ", unused)));
}

backend::ModelState first_values(const nn::Graph& graph, const WeightsRequest& request) {
  backend::ModelState state;
  state.parameters.resize(static_cast<std::size_t>(graph.parameter_count));
  state.statistics.resize(static_cast<std::size_t>(graph.statistic_count));
  nn::initialize_parameters(graph, request.seed, state.parameters, request.initializer);
  nn::initialize_statistics(graph, state.statistics);
  return state;
}

// Whether the file has no more of a detector than its backbone.
bool is_backbone(const std::vector<Wanted>& wanted, const Table& table) {
  const auto is_there = [&](bool in_backbone) {
    return std::ranges::any_of(
        wanted, [&](const Wanted& each) { return each.in_backbone() == in_backbone && table.find(each); });
  };
  return is_there(true) && !is_there(false);
}

WeightsFit fit_weights(const std::vector<ForeignTensor>& tensors, const nn::Graph& graph, const std::string& new_head,
                       backend::ModelState& state) {
  std::vector<Wanted> wanted = wanted_tensors(graph);
  Table table(wanted, tensors);
  WeightsFit fit;
  if (is_backbone(wanted, table)) {
    std::erase_if(wanted, [](const Wanted& each) { return !each.in_backbone(); });
    fit.new_head = "so do the pyramid and the other head, as the file has the weights of a backbone alone";
  }
  fit.wanted = wanted.size();
  std::vector<Missing> missing;
  // The head is taken or made anew as a whole.
  for (const Wanted& each : wanted) {
    if (!each.head || !new_head.empty()) continue;
    const ForeignTensor* tensor = table.take(each);
    if (const std::string why = tensor ? why_not(each, *tensor) : "not in the file";
        !why.empty() && fit.new_head.empty()) {
      fit.new_head = fmt::format("{}: {}", with_shape(each.torch_name, each.view->shape), why);
    }
  }
  if (fit.new_head.empty()) fit.new_head = new_head;
  for (const Wanted& each : wanted) {
    const ForeignTensor* tensor = table.take(each);
    if (each.head && !fit.new_head.empty()) continue;
    const std::string why = tensor ? why_not(each, *tensor) : std::string();
    if (!tensor || !why.empty()) {
      missing.push_back({&each, why});
      continue;
    }
    std::vector<float>& buffer = each.statistic ? state.statistics : state.parameters;
    copy_values(*tensor, std::span(buffer).subspan(static_cast<std::size_t>(each.view->offset),
                                                   static_cast<std::size_t>(each.view->size)));
    ++fit.fitted;
  }
  take_held_gammas(graph, table);
  fit.set = table.choice_of_set();
  fit.missing = describe(missing, table);
  for (const std::string& name : table.left_names()) fit.unused.push_back(with_shape(name, table.at(name).shape));
  return fit;
}

}  // namespace

std::optional<std::size_t> whole_fit(const std::vector<ForeignTensor>& tensors, const nn::Graph& graph) {
  const std::vector<Wanted> wanted = wanted_tensors(graph);
  Table table(wanted, tensors);
  std::size_t fitting = 0;
  for (const Wanted& each : wanted) {
    if (each.head) continue;
    const ForeignTensor* tensor = table.take(each);
    if (!tensor || !why_not(each, *tensor).empty()) return std::nullopt;
    ++fitting;
  }
  return fitting;
}

// The tensors of an ONNX model as its network for images of this size has them, where there is one.
static WeightsFile weights_for(const Path& file, const nn::Shape& image, const SharedStore& store) {
  WeightsFile weights(file, image, store);
  return weights.no_graph() ? WeightsFile(file, {}, store) : std::move(weights);
}

StartingWeights load_weights(const WeightsRequest& request, const nn::Graph& graph) {
  const WeightsFile weights = weights_for(request.file, graph.input(), request.store);
  weights.check_values();
  StartingWeights start;
  start.checkpoint.graph = graph;
  start.checkpoint.state = first_values(graph, request);
  start.checkpoint.job.seed = request.seed;
  start.checkpoint.job.preprocessing = weights.preprocessing();
  start.fit = fit_weights(weights.tensors(), graph, request.new_head, start.checkpoint.state);
  const std::size_t missing = start.fit.missing.size(), rest = start.fit.fitted + missing;
  const bool whole = missing == 0 && start.fit.new_head.empty();
  if (request.whole ? !whole : missing * kMostMissing > rest) refuse(request.file, graph, start.fit);
  return start;
}

void require_finite(const Checkpoint& checkpoint, const Path& file) {
  const auto check = [&](const std::vector<nn::TensorView>& views, const std::vector<float>& buffer) {
    for (const nn::TensorView& view : views) {
      const std::span values =
          std::span(buffer).subspan(static_cast<std::size_t>(view.offset), static_cast<std::size_t>(view.size));
      const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
      if (bad == values.end()) continue;
      throw DataError(fmt::format("{}: value {} of the tensor '{}' is {}", net::shown_url(file.string()),
                                  bad - values.begin(), view.name, *bad),
                      "such a network answers nothing: take the weights of a run before it diverged");
    }
  };
  check(checkpoint.graph.parameters, checkpoint.state.parameters);
  check(checkpoint.graph.statistics, checkpoint.state.statistics);
}

std::optional<int> classes_of_weights(const Path& file, const nn::Graph& graph) {
  const WeightsFile weights = weights_for(file, graph.input(), {});
  const std::vector<Wanted> wanted = wanted_tensors(graph);
  Table table(wanted, weights.tensors());
  for (const Wanted& each : wanted) {
    const ForeignTensor* tensor = each.head ? table.take(each) : nullptr;
    if (tensor && tensor->shape.size() == each.view->shape.size() && tensor->shape[0] >= 2 &&
        tensor->shape[0] <= INT32_MAX) {
      return classes_of_outputs(graph, static_cast<int>(tensor->shape[0]));
    }
  }
  return std::nullopt;
}

Json preprocessing_of_weights(const Path& file, const SharedStore& store) {
  return WeightsFile(file, {}, store).preprocessing();
}

int anchor_size_of_weights(const Path& file) { return WeightsFile(file).anchor_size(); }

}  // namespace dtrain::train
