// What the problems of one layer or block are written with.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <dtrain/nn/freeze.hpp>

#include "problem.hpp"

namespace dtrain::testing {

// Samples of a case: odd, so that no vector length divides it.
inline constexpr int kSamples = 5;
inline constexpr nn::Shape kImage{3, 9, 7};

inline nn::Convolution square(int out, int kernel, int stride, int pad) {
  return {.out = out,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad};
}

inline nn::Pooling window(nn::PoolingKind kind, int kernel, int stride, int pad, bool full = false,
                          bool count_include_pad = true) {
  return {.kind = kind,
          .kernel_h = kernel,
          .kernel_w = kernel,
          .stride_h = stride,
          .stride_w = stride,
          .pad_h = pad,
          .pad_w = pad,
          .full = full,
          .count_include_pad = count_include_pad};
}

// Builds the middle of a graph on a node and returns its last node.
using Middle = std::function<int(nn::GraphBuilder&, int)>;

inline Problem wrap(const std::string& name, const Middle& middle, float label_smoothing = 0, nn::Shape image = kImage,
                    int classes = 7) {
  nn::GraphBuilder builder(name, image);
  int node = builder.add("first", square(6, 3, 1, 1), {builder.input()});
  node = middle(builder, node);
  node = builder.add("flat", nn::Flatten{}, {node});
  node = builder.add("logits", nn::Dense{.out = classes}, {node});
  return make_problem(builder.finish(node, label_smoothing), kSamples);
}

inline Problem single(const std::string& name, const nn::Layer& layer) {
  return wrap(name, [&](nn::GraphBuilder& b, int x) { return b.add("middle", layer, {x}); });
}

// A network whose named layers do not learn.
inline Problem frozen(Problem problem, const std::string& name, const std::string& layers) {
  nn::freeze(problem.graph, layers);
  problem.name = problem.graph.name = name;
  return problem;
}

// Those of layer norm, layer scale, tokens and attention.
std::vector<Problem> transformer_problems();

}  // namespace dtrain::testing
