#include "fusion.hpp"

#include <algorithm>

#include <dtrain/backend/checks.hpp>

#include "node_access.hpp"

namespace dtrain::backend {
namespace {

class Fuser {
 public:
  Fuser(const nn::Graph& graph, NormTails tails) : graph_(graph), tails_(tails), readers_(graph.nodes.size()) {
    for (int index = 0; index < size(); ++index) {
      for (const int input : node(index).inputs) readers_[at(input)].push_back(index);
    }
    result_.norms.resize(graph.nodes.size());
    result_.norm_of.assign(graph.nodes.size(), -1);
    result_.inside.assign(graph.nodes.size(), false);
    result_.flatten_is_free.assign(graph.nodes.size(), false);
    result_.bias_is_later.assign(graph.nodes.size(), false);
    result_.needs_gradient.assign(graph.nodes.size(), false);
    result_.stays_float.assign(graph.nodes.size(), false);
  }

  Fusion run() {
    // From the end: of two batch norms that meet in one Add the later takes it, so that the other value is there by
    // then.
    for (int index = size() - 1; index > 0; --index) {
      if (as<nn::BatchNorm>(node(index))) group(index);
      result_.bias_is_later[at(index)] = is_biased_product(index) && is_activated(index);
      if (as<nn::Flatten>(node(index))) result_.flatten_is_free[at(index)] = any_order_will_do(index);
    }
    const std::vector<bool> held = held_parameters(graph_);
    for (int index = 0; index < size(); ++index) {
      const auto& inputs = node(index).inputs;
      result_.needs_gradient[at(index)] =
          std::ranges::any_of(node(index).parameters, [&](int parameter) { return !held[at(parameter)]; }) ||
          std::ranges::any_of(inputs, [&](int input) { return result_.needs_gradient[at(input)]; });
    }
    keep_logits_float();
    return result_;
  }

 private:
  int size() const { return static_cast<int>(graph_.nodes.size()); }
  const nn::Node& node(int index) const { return graph_.nodes[at(index)]; }
  int only_reader(int index) const { return readers_[at(index)].size() == 1 ? readers_[at(index)].front() : -1; }

  void group(int norm) {
    NormGroup group{norm, -1, false};
    int next = only_reader(norm);
    const bool is_added = next >= 0 && as<nn::Add>(node(next));
    group.added_by_norm = is_added && (result_.inside[at(next)] || result_.norm_of[at(next)] >= 0);
    if (is_added && !group.added_by_norm) {
      const auto& inputs = node(next).inputs;
      const int other = inputs[0] == norm ? inputs[1] : inputs[0];
      if (other != norm) {
        group.residual = other;
        extend(group, next);
        next = only_reader(next);
      }
    }
    group.relu = next >= 0 && is(next, nn::ActivationKind::relu);
    group.gelu = tails_.gelu && next >= 0 && group.residual < 0 && is(next, nn::ActivationKind::gelu);
    if (group.relu || group.gelu) extend(group, next);
    group.computed_twice = group.residual < 0 && next_is_product(group.output);
    if (tails_.max_pooling && group.relu && group.residual < 0) extend_by_pooling(group);
    result_.norms[at(norm)] = group;
    result_.norm_of[at(group.output)] = norm;
  }

  void keep_logits_float() {
    for (const int logits : graph_.nodes.back().inputs) keep_float(logits);
    for (int index = 0; index < size(); ++index) {
      if (is_of_regions(index)) result_.stays_float[at(index)] = true;
      const bool is_head = is_product(index) && !readers_[at(index)].empty() &&
                           std::ranges::all_of(readers_[at(index)], [&](int reader) { return reads_heads(reader); });
      if (is_head) result_.stays_float[at(index)] = true;
    }
  }

  bool is_of_regions(int index) const { return as<nn::Proposals>(node(index)) || as<nn::FoundRegions>(node(index)); }
  bool reads_heads(int index) const { return is_of_regions(index) || as<nn::RegionLoss>(node(index)); }

  // From the layer that computes the logits on, through scales.
  void keep_float(int first) {
    while (as<nn::Scale>(node(first)) && only_reader(first) >= 0) first = node(first).inputs[0];
    if (!is_product(first)) return;
    for (int index = first; only_reader(index) >= 0; index = only_reader(index)) result_.stays_float[at(index)] = true;
  }

  void extend(NormGroup& group, int to) {
    result_.inside[at(group.output)] = true;
    group.output = to;
  }

  // Where few windows have an element in common: each computes the norm of its own elements.
  void extend_by_pooling(NormGroup& group) {
    constexpr int kMostWindows = 4;     // of an element
    constexpr int kMostElements = 255;  // of a window: a byte says which
    const int next = only_reader(group.output);
    const auto* const pooling = next >= 0 ? as<nn::Pooling>(node(next)) : nullptr;
    if (!pooling || pooling->kind != nn::PoolingKind::max || pooling->global) return;
    const int elements = pooling->kernel_h * pooling->kernel_w;
    if (elements > kMostElements || elements > kMostWindows * pooling->stride_h * pooling->stride_w) return;
    group.pooling = next;
    extend(group, next);
  }

  bool next_is_product(int index) const {
    const int reader = only_reader(index);
    return reader >= 0 && is_product(reader);
  }
  bool is_product(int index) const { return as<nn::Convolution>(node(index)) || as<nn::Dense>(node(index)); }

  bool is_biased_product(int index) const { return is_product(index) && node(index).parameters.size() > 1; }
  bool is_activated(int index) const { return only_reader(index) >= 0 && as<nn::Activation>(node(only_reader(index))); }

  bool is(int index, nn::ActivationKind kind) const {
    const auto* activation = as<nn::Activation>(node(index));
    return activation && activation->kind == kind;
  }

  // A dense layer orders its weights as it likes; what works element by element passes the question on.
  bool any_order_will_do(int index) const {
    return std::ranges::all_of(readers_[at(index)], [&](int reader) {
      if (as<nn::Dense>(node(reader))) return true;
      const bool elementwise = as<nn::Activation>(node(reader)) || as<nn::Dropout>(node(reader)) ||
                               as<nn::Scale>(node(reader)) || as<nn::Flatten>(node(reader));
      return elementwise && any_order_will_do(reader);
    });
  }

  const nn::Graph& graph_;
  const NormTails tails_;
  std::vector<std::vector<int>> readers_;
  Fusion result_;
};

}  // namespace

Fusion fuse(const nn::Graph& graph, NormTails tails) { return Fuser(graph, tails).run(); }

}  // namespace dtrain::backend
