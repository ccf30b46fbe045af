#include "layer_cases.hpp"

namespace dtrain::testing {
namespace {

using nn::Activation;
using nn::ActivationKind;
using nn::Add;
using nn::Attention;
using nn::ClassToken;
using nn::Convolution;
using nn::Dropout;
using nn::FirstToken;
using nn::GraphBuilder;
using nn::LayerNorm;
using nn::LayerScale;
using nn::Pooling;
using nn::PoolingKind;
using nn::Position;

// Liu et al. 2022, with gains that show.
int convnext_block(GraphBuilder& b, int x, const std::string& name, int channels) {
  Convolution depthwise = square(channels, 7, 1, 3), wide = square(3 * channels, 1, 1, 0);
  Convolution narrow = square(channels, 1, 1, 0);
  depthwise.groups = channels;
  depthwise.bias = wide.bias = narrow.bias = true;
  int branch = b.add(name + "_norm", LayerNorm{}, {b.add(name + "_depthwise", depthwise, {x})});
  branch = b.add(name + "_gelu", Activation{ActivationKind::gelu}, {b.add(name + "_wide", wide, {branch})});
  branch = b.add(name + "_scale", LayerScale{.initial = 0.5f}, {b.add(name + "_narrow", narrow, {branch})});
  branch = b.add(name + "_drop", Dropout{.p = 0.4f, .whole_samples = true}, {branch});
  return b.add(name + "_sum", Add{}, {branch, x});
}

int convnext_stages(GraphBuilder& b, int x) {
  x = convnext_block(b, convnext_block(b, x, "first", 6), "second", 6);
  x = b.add("down", square(20, 2, 2, 0), {b.add("down_norm", LayerNorm{.epsilon = 1e-5f}, {x})});
  x = b.add("pool", Pooling{.kind = PoolingKind::average, .global = true}, {convnext_block(b, x, "third", 20)});
  return b.add("head_norm", LayerNorm{}, {x});
}

// Dosovitskiy et al. 2021. The channels of a head and the tokens fill no whole vectors.
int vision_transformer(GraphBuilder& b, int x) {
  constexpr int kChannels = 10;
  x = b.add("patches", square(kChannels, 2, 2, 0), {x});
  x = b.add("position", Position{}, {b.add("token", ClassToken{}, {x})});
  Convolution project = square(3 * kChannels, 1, 1, 0), out = square(kChannels, 1, 1, 0);
  project.bias = out.bias = true;
  for (const std::string name : {"one", "two"}) {
    int branch = b.add(name + "_project", project, {b.add(name + "_norm", LayerNorm{}, {x})});
    branch = b.add(name + "_out", out, {b.add(name + "_attention", Attention{.heads = 2}, {branch})});
    x = b.add(name + "_sum", Add{}, {branch, x});
  }
  return b.add("norm", LayerNorm{}, {b.add("picked", FirstToken{}, {x})});
}

}  // namespace

std::vector<Problem> transformer_problems() {
  std::vector<Problem> cases;
  cases.push_back(single("layer_norm", LayerNorm{}));
  cases.push_back(wrap("layer_norm_of_many", [](GraphBuilder& b, int x) {
    return b.add("norm", LayerNorm{.epsilon = 1e-3f}, {b.add("wide", square(97, 1, 1, 0), {x})});
  }));
  cases.push_back(wrap("layer_norm_of_whole_vectors", [](GraphBuilder& b, int x) {
    return b.add("norm", LayerNorm{}, {b.add("wide", square(80, 1, 1, 0), {x})});
  }));
  cases.push_back(single("layer_scale", LayerScale{.initial = 1.7f}));
  cases.push_back(single("drop_samples", Dropout{.p = 0.5f, .whole_samples = true}));
  cases.push_back(single("class_token", ClassToken{}));
  cases.push_back(single("position", Position{}));
  cases.push_back(single("first_token", FirstToken{}));
  cases.push_back(single("attention", Attention{.heads = 2}));
  cases.push_back(wrap("attention_of_many", [](GraphBuilder& b, int x) {
    return b.add("attention", Attention{.heads = 3}, {b.add("wide", square(3 * 3 * 16, 1, 1, 0), {x})});
  }));
  cases.push_back(wrap("convnext", convnext_stages, 0.1f));
  cases.push_back(wrap("vision_transformer", vision_transformer));
  cases.push_back(frozen(wrap("f", convnext_stages), "frozen_convnext", "second*,third_scale,down_norm"));
  cases.push_back(frozen(wrap("f", vision_transformer), "frozen_transformer", "one*,token,position"));
  cases.push_back(frozen(wrap("f", vision_transformer), "frozen_patches", "first,patches"));
  return cases;
}

}  // namespace dtrain::testing
