#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/base/random.hpp>
#include <dtrain/nn/initialize.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/whiten.hpp>

namespace dtrain::nn {
namespace {

constexpr Shape kImage{3, 16, 16};
constexpr std::size_t kWindow = 12;

// Neighbours that resemble each other, as in photographs.
std::vector<float> images(int n) {
  RandomStream random(1, RandomUse::drawing, 0, 0);
  std::vector<float> values(static_cast<std::size_t>(n * kImage.size()));
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = (k > 0 ? 0.8f * values[k - 1] : 0) + random.normal();
  return values;
}

Graph speednet() { return build_network({.name = "speednet", .image = kImage, .width = 4}); }

std::vector<float> whitened(const Graph& graph, const std::vector<float>& of) {
  std::vector<float> parameters(static_cast<std::size_t>(graph.parameter_count));
  initialize_parameters(graph, 1, parameters);
  whiten(graph, of, parameters);
  return parameters;
}

// What the filters make of the windows: each output varies by 1, no two vary together.
TEST(Whiten, MakesOutputsThatVaryAlikeAndApart) {
  const Graph graph = speednet();
  const std::vector<float> data = images(20), weight = whitened(graph, data);
  ASSERT_EQ(graph.parameters[0].name, "whiten_weight");
  double moments[kWindow][kWindow] = {};
  int windows = 0;
  for (int image = 0; image < 20; ++image) {
    for (int y = 0; y + 2 <= kImage.h; ++y) {
      for (int x = 0; x + 2 <= kImage.w; ++x, ++windows) {
        double out[kWindow] = {};
        for (std::size_t filter = 0; filter < kWindow; ++filter) {
          for (std::size_t k = 0; k < kWindow; ++k) {
            const std::size_t c = k / 4, dy = k % 4 / 2, dx = k % 2;
            const std::size_t at =
                ((static_cast<std::size_t>(image) * 3 + c) * 16 + static_cast<std::size_t>(y) + dy) * 16 +
                static_cast<std::size_t>(x) + dx;
            out[filter] += static_cast<double>(weight[filter * kWindow + k]) * static_cast<double>(data[at]);
          }
        }
        for (std::size_t a = 0; a < kWindow; ++a) {
          for (std::size_t b = 0; b < kWindow; ++b) moments[a][b] += out[a] * out[b];
        }
      }
    }
  }
  for (std::size_t a = 0; a < kWindow; ++a) {
    for (std::size_t b = 0; b < kWindow; ++b)
      EXPECT_NEAR(moments[a][b] / windows, a == b ? 1 : 0, 0.01) << a << " " << b;
  }
}

TEST(Whiten, AddsTheNegativesAndTouchesNothingElse) {
  const Graph graph = speednet();
  const std::vector<float> parameters = whitened(graph, images(2));
  std::vector<float> before(parameters.size());
  initialize_parameters(graph, 1, before);
  for (std::size_t k = 0; k < kWindow * kWindow; ++k) EXPECT_EQ(parameters[k], -parameters[kWindow * kWindow + k]);
  EXPECT_TRUE(
      std::equal(parameters.begin() + 2 * kWindow * kWindow, parameters.end(), before.begin() + 2 * kWindow * kWindow));
  EXPECT_NE(parameters[0], before[0]);
  EXPECT_FALSE(wants_images(build_network({.name = "resnet", .num_layers = 8})));
}

// All pixels alike: one direction varies, the others not at all.
TEST(Whiten, StaysFiniteWhereNothingVaries) {
  const Graph graph = speednet();
  for (const float value : whitened(graph, std::vector<float>(static_cast<std::size_t>(kImage.size()), 0.5f))) {
    EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(Whiten, RefusesLayersThatCannotBeginSo) {
  Convolution layer{.out = 24, .kernel_h = 2, .kernel_w = 2, .initial = InitialWeight::whitening};
  GraphBuilder wrong_place("wrong_place", kImage);
  const int relu = wrong_place.add("relu", Activation{}, {wrong_place.input()});
  EXPECT_THROW(wrong_place.add("conv", layer, {relu}), UsageError);
  GraphBuilder wrong_number("wrong_number", kImage);
  layer.out = 23;
  EXPECT_THROW(wrong_number.add("conv", layer, {wrong_number.input()}), UsageError);
}

TEST(Initialize, DiracHandsItsChannelsOnAndDrawsTheRest) {
  const Graph graph = speednet();
  std::vector<float> parameters(static_cast<std::size_t>(graph.parameter_count));
  initialize_parameters(graph, 1, parameters);
  const TensorView& view = *std::ranges::find(graph.parameters, "group2_conv1_weight", &TensorView::name);
  ASSERT_EQ(view.shape, (std::vector<std::int64_t>{16, 4, 3, 3}));
  const auto weight = [&](int out, int in, int at) {
    return parameters[static_cast<std::size_t>(view.offset + (out * 4 + in) * 9 + at)];
  };
  double squares = 0;
  for (int out = 0; out < 16; ++out) {
    for (int in = 0; in < 4; ++in) {
      for (int at = 0; at < 9; ++at) {
        if (out < 4) {
          EXPECT_EQ(weight(out, in, at), out == in && at == 4 ? 1.0f : 0.0f);
        } else {
          squares += static_cast<double>(weight(out, in, at)) * static_cast<double>(weight(out, in, at));
        }
      }
    }
  }
  EXPECT_NEAR(squares / (12 * 36) * 36 * 3, 1, 0.2);
}

}  // namespace
}  // namespace dtrain::nn
