// The rule muon against steps worked out by hand.
#include "muon.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "optimizer.hpp"

namespace dtrain::backend::reference {
namespace {

const nn::Optimizer kRule{.kind = nn::OptimizerKind::muon, .momentum = 0, .weight_decay = 0, .rest_momentum = 0.5f};

double polynomial(double x, int steps = 3) {
  for (; steps > 0; --steps) x = 3.4445 * x - 4.7750 * x * x * x + 2.0315 * x * x * x * x * x;
  return x;
}

// `weight` [out, columns], 1x1 convolution behind which a batch norm stands or does not, then a head [2, 2].
struct MuonTraining {
  MuonTraining(int out, int columns, bool normed) {
    nn::GraphBuilder b("muon", {columns, 1, 1});
    int x = b.add("conv", nn::Convolution{.out = out}, {b.input()});
    if (normed) x = b.add("bn", nn::BatchNorm{}, {x});
    graph = b.finish(b.add("logits", nn::Dense{.out = 2, .bias = false}, {x}));
    state.parameters.assign(static_cast<std::size_t>(graph.parameter_count), 1.0f);
  }
  MuonTraining& step(std::vector<float> gradients, nn::Optimizer rule = kRule, float rate = 0.5f) {
    gradients.resize(state.parameters.size(), 0.0f);
    for (float& gradient : gradients) gradient *= 4;  // sums over 4 samples
    update_parameters(graph, gradients, 4, {rule, rate}, state);
    return *this;
  }
  nn::Graph graph;
  ModelState state;
};

TEST(Muon, MovesEverySingularValueByThePolynomial) {
  const MuonTraining run = MuonTraining(2, 2, false).step({3, 0, 0, -4});
  EXPECT_NEAR(run.state.parameters[0], 1 - 0.5 * polynomial(0.6), 1e-6);
  EXPECT_NEAR(run.state.parameters[3], 1 + 0.5 * polynomial(0.8), 1e-6);
  EXPECT_NEAR(run.state.parameters[1], 1, 1e-6);
}

TEST(Muon, TakesAsManyStepsAsItIsTold) {
  nn::Optimizer rule = kRule;
  rule.newton_schulz.steps = 1;
  EXPECT_NEAR(MuonTraining(2, 2, false).step({3, 0, 0, -4}, rule).state.parameters[0], 1 - 0.5 * polynomial(0.6, 1),
              1e-6);
}

TEST(Muon, TurnsATallWeightOver) {
  const MuonTraining run = MuonTraining(3, 2, false).step({3, 0, 0, 4, 0, 0});
  EXPECT_NEAR(run.state.parameters[0], 1 - 0.5 * polynomial(0.6), 1e-6);
  EXPECT_NEAR(run.state.parameters[3], 1 - 0.5 * polynomial(0.8), 1e-6);
  EXPECT_NEAR(run.state.parameters[5], 1, 1e-6);
}

TEST(Muon, LooksAheadAlongItsMomentum) {
  nn::Optimizer rule = kRule;
  rule.momentum = 0.5f;
  MuonTraining run(2, 2, false);
  run.step({1, 0, 0, 0}, rule, 0).step({0, 0, 0, 1}, rule);  // m = (0.5, 1), and the direction (0.25, 1.5)
  const double length = std::hypot(0.25, 1.5);
  EXPECT_NEAR(run.state.parameters[0], 1 - 0.5 * polynomial(0.25 / length), 1e-6);
  EXPECT_NEAR(run.state.parameters[3], 1 - 0.5 * polynomial(1.5 / length), 1e-6);
  EXPECT_EQ(run.state.optimizer[0], 0.5f);
}

TEST(Muon, BringsAWeightToItsNormWhereOnlyABatchNormSeesItsScale) {
  const MuonTraining normed = MuonTraining(2, 2, true).step({3, 0, 0, -4}),
                     bare = MuonTraining(2, 2, false).step({3, 0, 0, -4});
  EXPECT_NEAR(normed.state.parameters[1], std::sqrt(2.0) / 2, 1e-6);
  EXPECT_NEAR(bare.state.parameters[1], 1, 1e-6);
}

TEST(Muon, DecaysWeightsBesideTheStep) {
  nn::Optimizer rule = kRule;
  rule.weight_decay = 0.1f;
  EXPECT_NEAR(MuonTraining(2, 2, false).step({3, 0, 0, -4}, rule).state.parameters[1], 1 - 0.5 * 0.1, 1e-6);
}

TEST(Muon, MovesTheHeadByItsOwnMomentumAndFactor) {
  nn::Optimizer rule = kRule;
  rule.head_lr_factor = 2;
  const MuonTraining run = MuonTraining(2, 2, false).step({0, 0, 0, 0, 0.25f}, rule);
  EXPECT_NEAR(run.state.parameters[4], 1 - 0.5 * (1 + 0.5) * 2 * 0.25, 1e-6);
}

// It is no matrix, and a weight all the same: it decays, and has not the factor of biases.
TEST(Muon, MovesATransposedConvolutionByItsOtherMomentum) {
  nn::GraphBuilder b("transposed", {2, 1, 1});
  const int larger = b.add("larger", nn::TransposedConvolution{.out = 1}, {b.input()});
  MuonTraining run(2, 2, false);
  run.graph = b.finish(b.add("logits", nn::Dense{.out = 2, .bias = false}, {larger}));
  run.state.parameters.assign(static_cast<std::size_t>(run.graph.parameter_count), 1.0f);
  nn::Optimizer rule = kRule;
  rule.weight_decay = 0.1f;
  rule.bias_lr_factor = 3;
  run.step({0.25f}, rule);
  EXPECT_NEAR(run.state.parameters[0], 1 - 0.5 * (1 + 0.5) * (0.25 + 0.1), 1e-6);
  EXPECT_NEAR(run.state.parameters[7], 1 - 0.5 * (1 + 0.5) * 0.1, 1e-6);
  EXPECT_EQ(run.state.parameters[8], 1) << "the bias";
}

TEST(Muon, LeavesAWeightWithoutGradientAlone) {
  const MuonTraining run = MuonTraining(2, 2, false).step({});
  EXPECT_EQ(run.state.parameters, std::vector<float>(run.state.parameters.size(), 1.0f));
}

}  // namespace
}  // namespace dtrain::backend::reference
