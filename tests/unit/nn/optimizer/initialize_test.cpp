#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/random.hpp>
#include <dtrain/nn/initialize.hpp>
#include <dtrain/nn/networks.hpp>

namespace dtrain::nn {
namespace {

const TensorView& view_named(const Graph& graph, const std::string& name) {
  return *std::ranges::find(graph.parameters, name, &TensorView::name);
}

std::vector<float> initialized(const Graph& graph, std::uint64_t seed) {
  std::vector<float> parameters(static_cast<std::size_t>(graph.parameter_count), NAN);
  initialize_parameters(graph, seed, parameters);
  return parameters;
}

std::span<const float> values(const TensorView& view, const std::vector<float>& buffer) {
  return std::span(buffer).subspan(static_cast<std::size_t>(view.offset), static_cast<std::size_t>(view.size));
}

double variance(std::span<const float> numbers) {
  double sum = 0;
  for (const float number : numbers) sum += static_cast<double>(number) * static_cast<double>(number);
  return sum / static_cast<double>(numbers.size());
}

const Graph& vgg() {
  static const Graph graph = build_network({.name = "vgg", .num_layers = 11, .image = {3, 32, 32}, .batch_norm = true});
  return graph;
}

TEST(Initialize, WeightsHaveTheVarianceOfHeAndOthers) {
  const std::vector<float> parameters = initialized(vgg(), 1);
  EXPECT_NEAR(variance(values(view_named(vgg(), "conv3_1_weight"), parameters)) * 128 * 9 / 2, 1, 0.02);
  EXPECT_NEAR(variance(values(view_named(vgg(), "fc7_weight"), parameters)) * 4096 / 2, 1, 0.01);
}

// MXNet's, of a convolution [256, 128, 3, 3] and a dense layer [4096, 512].
TEST(Initialize, NamesOfMxnetHaveItsVariances) {
  const std::vector<std::pair<const char*, double>> fans = {{"conv3_1_weight", (128 + 256) * 9},
                                                            {"fc6_weight", 512 + 4096}};
  const auto with = [](Initializer initializer) {
    std::vector<float> parameters(static_cast<std::size_t>(vgg().parameter_count), NAN);
    initialize_parameters(vgg(), 1, parameters, initializer);
    return parameters;
  };
  const std::vector<float> xavier = with(Initializer::xavier), msra = with(Initializer::msra),
                           normal = with(Initializer::normal), uniform = with(Initializer::uniform);
  for (const auto& [name, both] : fans) {
    const TensorView& view = view_named(vgg(), name);
    EXPECT_NEAR(variance(values(view, xavier)) * both / 2, 1, 0.02) << name;
    EXPECT_LE(std::ranges::max(values(view, xavier)), std::sqrt(6 / both) * 1.0001) << name;
    EXPECT_NEAR(variance(values(view, msra)) * both * 1.0625 / 4, 1, 0.02) << name;
    EXPECT_NEAR(variance(values(view, normal)) / 1e-4, 1, 0.02) << name;
    EXPECT_NEAR(variance(values(view, uniform)) * 3 / (0.07 * 0.07), 1, 0.02) << name;
    EXPECT_LT(std::ranges::max(values(view, uniform)), 0.07f) << name;
  }
  const TensorView& weight = view_named(vgg(), "fc8_weight");
  EXPECT_EQ(variance(values(weight, with(Initializer::zero))), 0);
  EXPECT_EQ(std::ranges::min(values(weight, with(Initializer::one))), 1);
  EXPECT_EQ(std::ranges::max(values(view_named(vgg(), "fc8_bias"), with(Initializer::one))), 0);
}

TEST(Initialize, FanInOfAGroupedConvolutionCountsOneGroup) {
  GraphBuilder builder("grouped", {64, 8, 8});
  const int convolution =
      builder.add("conv", Convolution{.out = 4096, .kernel_h = 3, .kernel_w = 3, .groups = 64}, {builder.input()});
  const Graph graph = builder.finish(builder.add("fc", Dense{2}, {convolution}));
  EXPECT_NEAR(variance(values(graph.parameters[0], initialized(graph, 1))) * 9 / 2, 1, 0.05);
}

TEST(Initialize, OtherParametersStartAsTheIdentity) {
  const std::vector<float> parameters = initialized(vgg(), 1);
  for (const float gamma : values(view_named(vgg(), "bn1_1_gamma"), parameters)) EXPECT_EQ(gamma, 1.0f);
  for (const float beta : values(view_named(vgg(), "bn1_1_beta"), parameters)) EXPECT_EQ(beta, 0.0f);
  for (const float bias : values(view_named(vgg(), "fc8_bias"), parameters)) EXPECT_EQ(bias, 0.0f);
}

TEST(Initialize, StatisticsStartAtMeanZeroAndVarianceOne) {
  std::vector<float> statistics(static_cast<std::size_t>(vgg().statistic_count), NAN);
  initialize_statistics(vgg(), statistics);
  for (const TensorView& view : vgg().statistics) {
    const float expected = view.role == TensorRole::running_mean ? 0.0f : 1.0f;
    for (const float value : values(view, statistics)) ASSERT_EQ(value, expected) << view.name;
  }
}

TEST(Initialize, IsAFunctionOfTheSeedAndTheTensor) {
  const Graph graph = build_network({.name = "mlp", .image = {1, 28, 28}});
  const std::vector<float> first = initialized(graph, 1);
  EXPECT_EQ(first, initialized(graph, 1));
  EXPECT_NE(first, initialized(graph, 2));
  EXPECT_NE(values(graph.parameters[0], first)[0], values(graph.parameters[2], first)[0]);
}

// Bits are a promise: tensor 0's first weight is the first normal number of its own stream, scaled.
TEST(Initialize, DrawsEachTensorFromItsOwnStream) {
  const Graph graph = build_network({.name = "mlp", .image = {1, 28, 28}});
  RandomStream stream(5, RandomUse::initial_weights, 2, 0);
  const float expected = static_cast<float>(std::sqrt(2.0 / 128)) * stream.normal();
  EXPECT_EQ(values(graph.parameters[2], initialized(graph, 5))[0], expected);
}

}  // namespace
}  // namespace dtrain::nn
