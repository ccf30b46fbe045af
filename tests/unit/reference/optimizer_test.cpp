// The optimizer rules against steps worked out by hand, for one weight (1.0) and one bias (2.0).
#include "optimizer.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace dtrain::backend::reference {
namespace {

nn::Graph weight_and_bias() {
  nn::Graph graph;
  graph.parameters = {{"w", {1}, nn::TensorRole::weight, 0, 1}, {"b", {1}, nn::TensorRole::bias, 1, 1}};
  graph.parameter_count = 2;
  return graph;
}

struct Training {
  nn::Graph graph = weight_and_bias();
  ModelState state{{1.0f, 2.0f}, {}, {}, 0};

  // Mean gradient 0.5 for both: a sum of 2 over 4 samples.
  Training& step(const nn::Optimizer& rule, float rate) {
    const std::vector<float> sums = {2, 2};
    update_parameters(graph, sums, 4, {rule, rate}, state);
    return *this;
  }
  float weight() const { return state.parameters[0]; }
  float bias() const { return state.parameters[1]; }
};

using nn::OptimizerKind;

TEST(Optimizer, SgdDecaysWeightsButNotBiases) {
  const nn::Optimizer rule{.kind = OptimizerKind::sgd, .momentum = 0.9f, .weight_decay = 0.1f};
  const Training run = Training().step(rule, 0.5f);
  EXPECT_FLOAT_EQ(run.weight(), 1 - 0.5f * (0.5f + 0.1f));
  EXPECT_FLOAT_EQ(run.bias(), 2 - 0.5f * 0.5f);
}

TEST(Optimizer, SgdKeepsTheLearningRateInItsMomentum) {
  const nn::Optimizer rule{.kind = OptimizerKind::sgd, .momentum = 0.5f, .weight_decay = 0};
  const Training run =
      Training().step(rule, 1.0f).step(rule, 0.0f);  // the second step moves by the old rate's momentum
  EXPECT_FLOAT_EQ(run.weight(), 1 - 0.5f - 0.25f);
  EXPECT_FLOAT_EQ(run.state.optimizer[0], -0.25f);
}

TEST(Optimizer, NagLooksAheadAlongItsMomentum) {
  const nn::Optimizer rule{.kind = OptimizerKind::nag, .momentum = 0.5f, .weight_decay = 0};
  const Training once = Training().step(rule, 1.0f);
  EXPECT_FLOAT_EQ(once.weight(), 1 - (0.5f + 0.5f * 0.5f));
  const Training twice = Training().step(rule, 1.0f).step(rule, 1.0f);
  EXPECT_FLOAT_EQ(twice.weight(), once.weight() - (0.5f + 0.5f * 0.75f));
}

// The bias stands in the group vector; its decay is none, the weight's has the plain rate.
TEST(Optimizer, AFactorMultipliesTheGradientsRate) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::nag, OptimizerKind::muon}) {
    const nn::Optimizer rule{
        .kind = kind, .momentum = 0, .weight_decay = 0.1f, .bias_lr_factor = 3, .rest_momentum = 0};
    EXPECT_FLOAT_EQ(Training().step(rule, 0.5f).bias(), 2 - 3 * 0.5f * 0.5f) << nn::optimizer_name(kind);
  }
  for (const OptimizerKind kind : {OptimizerKind::adam, OptimizerKind::adamw}) {
    const nn::Optimizer rule{.kind = kind, .weight_decay = 0, .bias_lr_factor = 3};
    EXPECT_NEAR(Training().step(rule, 0.01f).bias(), 2 - 3 * 0.01, 1e-6) << nn::optimizer_name(kind);
  }
}

TEST(Optimizer, AdamsFirstStepIsTheLearningRate) {
  const nn::Optimizer rule{.kind = OptimizerKind::adam, .weight_decay = 0};
  const Training run = Training().step(rule, 0.01f);
  EXPECT_NEAR(run.weight(), 1 - 0.01, 1e-6);
  EXPECT_EQ(run.state.updates, 1u);
}

TEST(Optimizer, AdamPutsTheDecayIntoTheGradient) {
  const nn::Optimizer rule{.kind = OptimizerKind::adam, .weight_decay = 0.1f};
  const Training run = Training().step(rule, 0.01f);
  EXPECT_NEAR(run.state.optimizer[0], 0.1 * (0.5 + 0.1), 1e-7);
  EXPECT_NEAR(run.state.optimizer[1], 0.1 * 0.5, 1e-7);
  EXPECT_NEAR(run.state.optimizer[2], 0.001 * 0.36, 1e-8);
}

TEST(Optimizer, AdamsEpsilonStandsBesideTheUncorrectedRoot) {
  const nn::Optimizer rule{.kind = OptimizerKind::adam, .weight_decay = 0, .epsilon = 1};
  const Training run = Training().step(rule, 1.0f);
  const double root = std::sqrt(0.001 * 0.25);
  EXPECT_NEAR(run.weight(), 1 - std::sqrt(0.001) / 0.1 * 0.05 / (root + 1), 1e-6);
}

TEST(Optimizer, AdamWsEpsilonStandsBesideTheCorrectedRootAndDecayIsApart) {
  const nn::Optimizer rule{.kind = OptimizerKind::adamw, .weight_decay = 0.1f, .epsilon = 1};
  const Training run = Training().step(rule, 1.0f);
  EXPECT_NEAR(run.weight(), 1 - (0.5 / (0.5 + 1) + 0.1 * 1), 1e-6);
  EXPECT_NEAR(run.bias(), 2 - 0.5 / (0.5 + 1), 1e-6);
}

// MXNet: epsilon stands inside the root, the decay in the gradient.
TEST(Optimizer, RmspropDividesByTheRootOfTheMeanSquare) {
  const nn::Optimizer rule{.kind = OptimizerKind::rmsprop, .weight_decay = 0.1f, .beta2 = 0.75f, .epsilon = 0.01f};
  const Training run = Training().step(rule, 0.5f);
  EXPECT_NEAR(run.state.optimizer[0], 0.25 * 0.36, 1e-7);
  EXPECT_NEAR(run.weight(), 1 - 0.5 * 0.6 / std::sqrt(0.25 * 0.36 + 0.01), 1e-6);
  EXPECT_NEAR(run.bias(), 2 - 0.5 * 0.5 / std::sqrt(0.25 * 0.25 + 0.01), 1e-6);
}

TEST(Optimizer, AdagradAddsSquaresUpAndDecaysApart) {
  const nn::Optimizer rule{.kind = OptimizerKind::adagrad, .weight_decay = 0.1f, .epsilon = 0.01f};
  const Training once = Training().step(rule, 0.5f), twice = Training(once).step(rule, 0.5f);
  EXPECT_NEAR(once.weight(), 1 - 0.5 * (0.5 / std::sqrt(0.25 + 0.01) + 0.1), 1e-6);
  EXPECT_NEAR(twice.bias(), once.bias() - 0.5 * 0.5 / std::sqrt(0.5 + 0.01), 1e-6);
  EXPECT_FLOAT_EQ(twice.state.optimizer[0], 0.5f);
}

// One number a tensor: the direction is cut to the length of the weight.
TEST(Optimizer, LambMovesAWeightByAShareOfItsLengthAndBiasesByTheBareDirection) {
  const nn::Optimizer rule{.kind = OptimizerKind::lamb, .weight_decay = 0.1f};
  Training run = Training();
  run.state.parameters = {3, 2};
  run.step(rule, 0.01f);
  EXPECT_NEAR(run.weight(), 3 - 0.01 * 3, 1e-6);
  EXPECT_NEAR(run.bias(), 2 - 0.01, 1e-6);
  Training zero;
  zero.state.parameters = {0, 0};
  zero.step(rule, 0.01f);  // nothing to be a share of: the bare direction
  EXPECT_NEAR(zero.weight(), -0.01, 1e-6);
}

TEST(Optimizer, LambNeitherDecaysNorScalesAGamma) {
  const nn::Optimizer rule{.kind = OptimizerKind::lamb, .weight_decay = 0.5f};
  Training scaled;
  scaled.graph.parameters[1].role = nn::TensorRole::gamma;
  EXPECT_NEAR(scaled.step(rule, 0.01f).bias(), 2 - 0.01, 1e-6);
}

TEST(Optimizer, LarsTrustsATensorByItsLengthAndBiasesFully) {
  const nn::Optimizer rule{.kind = OptimizerKind::lars, .momentum = 0.5f, .weight_decay = 0.1f, .epsilon = 0.01f};
  const Training once = Training().step(rule, 10.0f);
  const double ratio = 0.001 / (0.5 + 0.1 + 0.01);
  EXPECT_NEAR(once.weight(), 1 - 10 * ratio * 0.6, 1e-6);
  EXPECT_NEAR(once.bias(), 2 - 10 * 0.5, 1e-6);
  EXPECT_NEAR(Training(once).step(rule, 0).weight(), once.weight() + 0.5 * (once.weight() - 1), 1e-6);
}

TEST(Optimizer, LarsTrustsAWeightWithoutDecayTooAndAGammaFully) {
  nn::Optimizer rule{.kind = OptimizerKind::lars, .momentum = 0, .weight_decay = 0, .epsilon = 0.01f};
  EXPECT_NEAR(Training().step(rule, 10.0f).weight(), 1 - 10 * 0.001 / (0.5 + 0.01) * 0.5, 1e-6);
  rule.weight_decay = 0.1f;
  Training scaled;
  scaled.graph.parameters[1].role = nn::TensorRole::gamma;
  EXPECT_NEAR(scaled.step(rule, 10.0f).bias(), 2 - 10 * (0.5 + 0.1 * 2), 1e-5);
}

// The mean gradients are 0.5 and 0.5.
TEST(Optimizer, CutsTheNormOfAllGradientsTogether) {
  nn::Optimizer rule{.momentum = 0, .weight_decay = 0.1f, .clip_norm = 0.1f};
  const double factor = 0.1 / (std::sqrt(0.5) + 1e-6);
  EXPECT_NEAR(Training().step(rule, 0.5f).bias(), 2 - 0.5 * factor * 0.5, 1e-6);
  EXPECT_NEAR(Training().step(rule, 0.5f).weight(), 1 - 0.5 * (factor * 0.5 + 0.1), 1e-6);  // not the decay
  rule.clip_norm = 0.75f;
  EXPECT_EQ(Training().step(rule, 0.5f).bias(), 2 - 0.5f * 0.5f);
}

TEST(Optimizer, CutsEachGradientBehindTheNorm) {
  nn::Optimizer rule{.momentum = 0, .weight_decay = 0, .clip_gradient = 0.2f};
  EXPECT_FLOAT_EQ(Training().step(rule, 0.5f).bias(), 2 - 0.5f * 0.2f);
  EXPECT_FLOAT_EQ(Training().step(rule, -0.5f).bias(), 2 + 0.5f * 0.2f);
  rule.clip_norm = 0.1f;  // what is left is below the cut
  EXPECT_NEAR(Training().step(rule, 0.5f).bias(), 2 - 0.5 * 0.05 * std::sqrt(2.0), 1e-6);
}

TEST(Optimizer, AdamCorrectsLaterStepsByTheirNumber) {
  const nn::Optimizer rule{.kind = OptimizerKind::adamw, .weight_decay = 0};
  Training run;
  for (int t = 1; t <= 5; ++t) run.step(rule, 0.01f);  // with one gradient for ever each step is the learning rate
  EXPECT_NEAR(run.weight(), 1 - 5 * 0.01, 1e-5);
}

}  // namespace
}  // namespace dtrain::backend::reference
