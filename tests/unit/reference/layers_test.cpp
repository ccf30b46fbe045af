// Each layer against numbers worked out by hand.
#include "layers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace dtrain::backend::reference {
namespace {

Samples samples(int n, nn::Shape shape, std::vector<float> values) {
  Samples result(n, shape);
  result.values = std::move(values);
  return result;
}

// 1, 2, 3, ... in c, h, w order.
Samples counting(nn::Shape shape) {
  Samples result(1, shape);
  std::iota(result.values.begin(), result.values.end(), 1.0f);
  return result;
}

Samples pooled(const nn::Pooling& layer, const Samples& x, nn::Shape out) {
  Samples y(x.n, out);
  pool(layer, x, y);
  return y;
}

using Values = std::vector<float>;

TEST(Convolution, SlidesTheKernelWithoutFlippingIt) {
  const Values kernel = {1, 0, 0, -10};
  Samples y(1, {1, 2, 2});
  convolve({.out = 1, .kernel_h = 2, .kernel_w = 2}, counting({1, 3, 3}), kernel.data(), nullptr, y);
  EXPECT_EQ(y.values, (Values{1 - 50, 2 - 60, 4 - 80, 5 - 90}));
}

TEST(Convolution, ReadsZerosFromThePaddingAndStrides) {
  const Values kernel(9, 1.0f), bias = {100};
  Samples y(1, {1, 2, 2});
  const nn::Convolution layer{
      .out = 1, .kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1, .bias = true};
  convolve(layer, counting({1, 3, 3}), kernel.data(), bias.data(), y);
  EXPECT_EQ(y.values, (Values{100 + 12, 100 + 16, 100 + 24, 100 + 28}));
}

TEST(Convolution, GroupsSeeOnlyTheirOwnChannels) {
  const Values kernel = {1, 10, 100, 1000};  // four outputs of two groups, one input each
  Samples y(1, {4, 1, 1});
  convolve({.out = 4, .groups = 2}, samples(1, {2, 1, 1}, {3, 5}), kernel.data(), nullptr, y);
  EXPECT_EQ(y.values, (Values{3, 30, 500, 5000}));
}

TEST(Convolution, GivesEachInputTheSumOverTheWindowsThatReadIt) {
  const Values kernel = {1, 2, 3, 4};
  const Samples x = counting({1, 2, 3}), dy = samples(1, {1, 1, 2}, {1, 10});
  Samples dx(1, x.shape);
  Values dkernel(4, 0.0f), dbias(1, 0.0f);
  convolve_backward({.out = 1, .kernel_h = 2, .kernel_w = 2, .bias = true}, x, kernel.data(), dy, dx, dkernel.data(),
                    dbias.data());
  EXPECT_EQ(dx.values, (Values{1, 2 + 10, 20, 3, 4 + 30, 40}));
  EXPECT_EQ(dkernel, (Values{1 + 20, 2 + 30, 4 + 50, 5 + 60}));
  EXPECT_EQ(dbias, (Values{11}));
}

TEST(Dense, FlattensInChannelHeightWidthOrder) {
  const Values weight = {1, 10, 100, 1000}, bias = {0.5f};
  Samples y(1, {1, 1, 1});
  dense(samples(1, {2, 1, 2}, {1, 2, 3, 4}), weight.data(), bias.data(), y);
  EXPECT_EQ(y.values, (Values{4321.5f}));
}

TEST(Dense, SendsGradientsToInputWeightAndBias) {
  const Values weight = {1, 2, 3, 4};
  const Samples x = samples(2, {2, 1, 1}, {1, 2, 3, 4}), dy = samples(2, {2, 1, 1}, {1, 10, 100, 1000});
  Samples dx(2, x.shape);
  Values dweight(4, 0.0f), dbias(2, 0.0f);
  dense_backward(x, weight.data(), dy, dx, dweight.data(), dbias.data());
  EXPECT_EQ(dx.values, (Values{31, 42, 3100, 4200}));
  EXPECT_EQ(dweight, (Values{301, 402, 3010, 4020}));
  EXPECT_EQ(dbias, (Values{101, 1010}));
}

TEST(BatchNorm, UsesTheBiasedVarianceOfTheWholeChannel) {
  const Moments moments = moments_of(samples(2, {2, 1, 2}, {1, 2, 10, 10, 3, 6, 10, 10}));
  EXPECT_EQ(moments.mean, (std::vector<double>{3, 10}));
  EXPECT_EQ(moments.variance, (std::vector<double>{(4 + 1 + 0 + 9) / 4.0, 0}));
}

TEST(BatchNorm, NormalisesThenScalesAndShifts) {
  const Values gamma = {3}, beta = {100};
  const Samples x = samples(2, {1, 1, 1}, {1, 5});
  Samples y(2, x.shape);
  batch_norm({.epsilon = 0}, x, moments_of(x), gamma.data(), beta.data(), y);
  EXPECT_EQ(y.values, (Values{97, 103}));
}

TEST(BatchNorm, HoldsAFixedGammaAtOne) {
  const Values gamma = {3}, beta = {100};
  const Samples x = samples(2, {1, 1, 1}, {1, 5}), dy = samples(2, {1, 1, 1}, {1, -3});
  Samples y(2, x.shape), dx(2, x.shape);
  Values dgamma(1, 0.0f), dbeta(1, 0.0f);
  const nn::BatchNorm layer{.epsilon = 0, .fix_gamma = true};
  batch_norm(layer, x, moments_of(x), gamma.data(), beta.data(), y);
  batch_norm_backward(layer, x, gamma.data(), dy, dx, dgamma.data(), dbeta.data());
  EXPECT_EQ(y.values, (Values{99, 101}));
  EXPECT_EQ(dgamma, (Values{0}));
  EXPECT_EQ(dbeta, (Values{-2}));
}

TEST(Activation, CutsAndSquashes) {
  const Samples x = samples(1, {5, 1, 1}, {-1, 0, 0.5f, 6, 7});
  const auto of = [&](nn::ActivationKind kind) {
    Samples y(1, x.shape);
    activate({kind}, x, y);
    return y.values;
  };
  EXPECT_EQ(of(nn::ActivationKind::relu), (Values{0, 0, 0.5f, 6, 7}));
  EXPECT_EQ(of(nn::ActivationKind::relu6), (Values{0, 0, 0.5f, 6, 6}));
  EXPECT_FLOAT_EQ(of(nn::ActivationKind::tanh)[0], -0.76159416f);
  EXPECT_FLOAT_EQ(of(nn::ActivationKind::sigmoid)[2], 0.62245933f);
  EXPECT_FLOAT_EQ(of(nn::ActivationKind::gelu)[0], -0.15865525f);
  EXPECT_FLOAT_EQ(of(nn::ActivationKind::gelu)[2], 0.34573123f);
  EXPECT_FLOAT_EQ(of(nn::ActivationKind::silu)[0], -0.26894142f);
  EXPECT_FLOAT_EQ(of(nn::ActivationKind::silu)[4], 6.9936224f);
  EXPECT_EQ(of(nn::ActivationKind::hard_sigmoid), (Values{1.0f / 3, 0.5f, 3.5f / 6, 1, 1}));
  EXPECT_EQ(of(nn::ActivationKind::hard_swish), (Values{-1.0f / 3, 0, 1.75f / 6, 6, 7}));
}

TEST(Activation, StaysFiniteForHugeInputsAndKeepsNaN) {
  const Samples x = samples(1, {3, 1, 1}, {-1e30f, 1e30f, NAN});
  Samples y(1, x.shape);
  for (const auto kind : {nn::ActivationKind::tanh, nn::ActivationKind::sigmoid}) {
    activate({kind}, x, y);
    EXPECT_FLOAT_EQ(y.values[0], kind == nn::ActivationKind::tanh ? -1 : 0);
    EXPECT_FLOAT_EQ(y.values[1], 1);
    EXPECT_TRUE(std::isnan(y.values[2]));
  }
  activate({nn::ActivationKind::gelu}, x, y);
  EXPECT_EQ(y.values[0], 0);
  EXPECT_EQ(y.values[1], 1e30f);
  EXPECT_TRUE(std::isnan(y.values[2]));
  activate({nn::ActivationKind::relu}, x, y);
  EXPECT_TRUE(std::isnan(y.values[2]));
}

TEST(Concat, PutsTheChannelsOfASampleTogether) {
  const Samples a = counting({1, 2, 1}), b = samples(1, {2, 2, 1}, {5, 6, 7, 8});
  Samples y(1, {3, 2, 1}), db(1, b.shape);
  const Samples* const inputs[] = {&a, &b};
  concat(inputs, y);
  EXPECT_EQ(y.values, (Values{a.values[0], a.values[1], 5, 6, 7, 8}));
  concat_backward(y, a.shape.size(), db);
  EXPECT_EQ(db.values, b.values);
}

TEST(Multiply, GivesEachFactorTheSumOverItsPixels) {
  const Samples x = samples(1, {2, 1, 2}, {1, 2, 3, 4}), factors = samples(1, {2, 1, 1}, {10, -1});
  const Samples dy = samples(1, x.shape, {1, 1, 1, 2});
  Samples y(1, x.shape), dx(1, x.shape), dfactors(1, factors.shape);
  multiply(x, factors, y);
  EXPECT_EQ(y.values, (Values{10, 20, -3, -4}));
  multiply_backward(x, factors, dy, dx, dfactors);
  EXPECT_EQ(dx.values, (Values{10, 10, -1, -2}));
  EXPECT_EQ(dfactors.values, (Values{3, 11}));
}

TEST(LayerNorm, NormalisesTheChannelsOfEachPixel) {
  const Samples x = samples(1, {2, 1, 2}, {1, 5, 3, 5});
  const float gamma[] = {2, 1}, beta[] = {0, 10};
  Samples y(1, x.shape);
  layer_norm({.epsilon = 1e-12f}, x, gamma, beta, y);
  EXPECT_EQ(y.values, (Values{-2, 0, 11, 10}));  // channels that are equal are 0
}

TEST(Attention, OfEqualKeysIsTheMeanOfTheValues) {
  const Samples x = samples(1, {3, 1, 2}, {7, -9, 1, 1, 4, 6});
  Samples y(1, {1, 1, 2});
  attend({.heads = 1}, x, y);
  EXPECT_EQ(y.values, (Values{5, 5}));
}

TEST(ClassToken, StandsBeforeThePixels) {
  const Samples x = samples(1, {2, 1, 2}, {1, 2, 3, 4});
  const float token[] = {-1, -2};
  Samples y(1, {2, 1, 3}), first(1, {2, 1, 1});
  class_token(x, token, y);
  EXPECT_EQ(y.values, (Values{-1, 1, 2, -2, 3, 4}));
  first_token(y, first);
  EXPECT_EQ(first.values, (Values{-1, -2}));
}

TEST(Pooling, TakesTheLargestOfEachWindow) {
  const Samples y =
      pooled({.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}, counting({1, 4, 4}), {1, 2, 2});
  EXPECT_EQ(y.values, (Values{6, 8, 14, 16}));
}

TEST(Pooling, NeverPicksThePaddingAsTheLargest) {
  const Samples x = samples(1, {1, 1, 2}, {-3, -5});
  const Samples y = pooled({.kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1}, x, {1, 1, 2});
  EXPECT_EQ(y.values, (Values{-3, -3}));
}

TEST(Pooling, SendsTheGradientOfATieToTheFirst) {
  const Samples x = samples(1, {1, 2, 2}, {0, 7, 7, 7}), dy = samples(1, {1, 1, 1}, {5});
  Samples dx(1, x.shape);
  pool_backward({.kernel_h = 2, .kernel_w = 2}, x, dy, dx);
  EXPECT_EQ(dx.values, (Values{0, 5, 0, 0}));
}

TEST(Pooling, CountsThePaddingOnlyWhenAsked) {
  nn::Pooling layer{.kind = nn::PoolingKind::average, .kernel_h = 1, .kernel_w = 2, .stride_w = 2, .pad_w = 1};
  const Samples x = samples(1, {1, 1, 2}, {4, 8});
  EXPECT_EQ(pooled(layer, x, {1, 1, 2}).values, (Values{2, 4}));
  layer.count_include_pad = false;
  EXPECT_EQ(pooled(layer, x, {1, 1, 2}).values, (Values{4, 8}));
}

TEST(Pooling, CutsTheLastWindowOfAFullPoolingAtThePaddedEnd) {
  const nn::Pooling layer{.kind = nn::PoolingKind::average, .kernel_h = 1, .kernel_w = 2, .stride_w = 2, .full = true};
  EXPECT_EQ(pooled(layer, counting({1, 1, 3}), {1, 1, 2}).values, (Values{1.5f, 3}));
}

TEST(Pooling, AveragesEverythingWhenGlobal) {
  const nn::Pooling layer{.kind = nn::PoolingKind::average, .kernel_h = 9, .pad_h = 3, .global = true};
  EXPECT_EQ(pooled(layer, counting({2, 2, 2}), {2, 1, 1}).values, (Values{2.5f, 6.5f}));
}

TEST(Dropout, DividesWhatItKeepsByItsShare) {
  const std::uint32_t id = 7;
  const DrawKey key{{.seed = 1, .epoch = 0}, 3, &id};
  const Samples x = samples(1, {1, 100, 100}, Values(10000, 1.0f));
  Samples y(1, x.shape);
  drop({.p = 0.2f}, key, x, y);
  const auto kept = std::count(y.values.begin(), y.values.end(), 1.25f);
  EXPECT_EQ(kept + std::count(y.values.begin(), y.values.end(), 0.0f), 10000);
  EXPECT_NEAR(static_cast<double>(kept), 8000, 4 * 40);  // four standard deviations
}

HostBatch labelled(const std::int32_t* labels) { return {.labels = labels}; }

TEST(Softmax, GivesTheCrossEntropyOfTwoClasses) {
  const Samples logits = samples(1, {2, 1, 1}, {0, std::log(3.0f)});
  const std::int32_t label = 0;
  EXPECT_NEAR(softmax_metrics({}, 1, logits, labelled(&label)).loss_sum, std::log(4.0), 1e-6);
  Samples dlogits(1, logits.shape);
  softmax_loss_backward({}, logits, labelled(&label), dlogits);
  EXPECT_FLOAT_EQ(dlogits.values[0], 0.25f - 1);
  EXPECT_FLOAT_EQ(dlogits.values[1], 0.75f);
}

TEST(Softmax, SpreadsTheSmoothingOverAllClasses) {
  const Samples logits = samples(1, {2, 1, 1}, {0, std::log(3.0f)});
  const std::int32_t label = 0;
  // Target (0.8 + 0.1, 0.1): 0.9 * log 4 + 0.1 * log(4/3).
  EXPECT_NEAR(softmax_metrics({.label_smoothing = 0.2f}, 1, logits, labelled(&label)).loss_sum,
              0.9 * std::log(4.0) + 0.1 * std::log(4 / 3.0), 1e-6);
}

TEST(Softmax, SurvivesLargeLogits) {
  const Samples logits = samples(1, {2, 1, 1}, {1e4f, -1e4f});
  const std::int32_t label = 1;
  EXPECT_FLOAT_EQ(static_cast<float>(softmax_metrics({}, 1, logits, labelled(&label)).loss_sum), 2e4f);
}

TEST(Softmax, RanksTiesByTheirIndex) {
  const Samples logits = samples(3, {3, 1, 1}, {5, 5, 5, 5, 5, 5, 5, 5, 5});
  const std::vector<std::int32_t> labels = {0, 1, 2};
  const StepMetrics metrics = softmax_metrics({}, 2, logits, labelled(labels.data()));
  EXPECT_EQ(metrics.correct, 1);
  EXPECT_EQ(metrics.top_k_correct, 2);
  EXPECT_EQ(metrics.count, 3);
}

TEST(Softmax, CountsNaNAsWrongAndShowsItInTheLoss) {
  const Samples logits = samples(1, {3, 1, 1}, {NAN, NAN, NAN});
  const std::int32_t label = 0;
  const StepMetrics metrics = softmax_metrics({}, 3, logits, labelled(&label));
  EXPECT_TRUE(std::isnan(metrics.loss_sum));
  EXPECT_EQ(metrics.correct, 0);
}

}  // namespace
}  // namespace dtrain::backend::reference
