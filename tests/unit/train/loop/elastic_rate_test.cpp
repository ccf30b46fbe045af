#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/train/elastic_rate.hpp>

namespace dtrain::train {
namespace {

std::vector<double> trace(RateRamp ramp, int steps) {
  std::vector<double> gammas;
  for (int i = 0; i < steps; ++i, ramp = after_step(ramp)) gammas.push_back(gamma_of(ramp));
  return gammas;
}

TEST(RateRamp, FollowsTheClosedForm) {
  for (const double k : {2.0, 8.0, 0.5, 1.5}) {
    const std::vector<double> gammas = trace(aimed_at({}, k, ElasticRate::smooth, 8), 20);
    for (int t = 0; t < 20; ++t) {
      const double expected = t < 8 ? 1 + (k - 1) * t / 8 : k;
      EXPECT_DOUBLE_EQ(gammas[static_cast<std::size_t>(t)], expected);
    }
  }
}

TEST(RateRamp, BeginsAChangeInItsMiddleWhereItStands) {
  RateRamp ramp = aimed_at({}, 3, ElasticRate::smooth, 8);
  for (int i = 0; i < 5; ++i) ramp = after_step(ramp);
  const double last = gamma_before(ramp);
  EXPECT_DOUBLE_EQ(last, 2);
  const std::vector<double> gammas = trace(aimed_at(ramp, 1, ElasticRate::smooth, 4), 6);
  EXPECT_EQ(gammas, (std::vector<double>{2, 1.75, 1.5, 1.25, 1, 1}));
}

TEST(RateRamp, JumpsWhenLinearAndStaysWhenNone) {
  EXPECT_EQ(trace(aimed_at({}, 4, ElasticRate::linear, 8), 2), (std::vector<double>{4, 4}));
  EXPECT_EQ(trace(aimed_at({}, 4, ElasticRate::none, 8), 2), (std::vector<double>{1, 1}));
}

TEST(RateRamp, GoesOnWhenItIsAimedAtTheSameAgain) {
  RateRamp ramp = after_step(aimed_at({}, 3, ElasticRate::smooth, 8));
  EXPECT_EQ(aimed_at(ramp, 3, ElasticRate::smooth, 8), ramp);
}

TEST(RateRamp, SurvivesJson) {
  const RateRamp ramp = after_step(aimed_at({}, 1.0 / 3, ElasticRate::smooth, 8));
  EXPECT_EQ(ramp_from_json(to_json(ramp)), ramp);
  EXPECT_THROW(ramp_from_json(Json::object({{"from", 1}})), DataError);
}

// Lin et al. 2019, equations 3 and 5: momentum that holds the rate, corrected, moves weights as momentum without it.
class CorrectedMomentum : public testing::TestWithParam<nn::OptimizerKind> {};
INSTANTIATE_TEST_SUITE_P(RulesWithTheRateInIt, CorrectedMomentum,
                         testing::Values(nn::OptimizerKind::sgd, nn::OptimizerKind::lars));

TEST_P(CorrectedMomentum, MovesWeightsAsIfItHeldBareGradients) {
  constexpr double kRate = 0.1;
  const nn::Optimizer rule{.kind = GetParam(), .momentum = 0.9f};
  RateRamp ramp;
  double v = 0, with_rate = 0, u = 0, bare = 0;
  for (int t = 0; t < 40; ++t) {
    if (t == 5) ramp = aimed_at(ramp, 4, ElasticRate::smooth, 8);
    if (t == 9) ramp = aimed_at(ramp, 2, ElasticRate::smooth, 8);
    if (t == 25) ramp = aimed_at(ramp, 3, ElasticRate::linear, 8);
    const double gradient = 1 + t % 3, rate = kRate * gamma_of(ramp);
    v = static_cast<double>(corrected(rule, ramp).momentum) * v + rate * gradient;
    u = static_cast<double>(rule.momentum) * u + gradient;
    with_rate -= v;
    bare -= rate * u;
    EXPECT_NEAR(with_rate, bare, 1e-5);
    ramp = after_step(ramp);
  }
}

TEST(RateRamp, LeavesRulesAloneThatKeepBareGradients) {
  const RateRamp ramp = after_step(aimed_at({}, 4, ElasticRate::smooth, 8));
  for (const auto kind : {nn::OptimizerKind::nag, nn::OptimizerKind::adam, nn::OptimizerKind::adamw}) {
    const nn::Optimizer rule{.kind = kind, .momentum = 0.9f};
    EXPECT_EQ(corrected(rule, ramp).momentum, 0.9f);
  }
}

}  // namespace
}  // namespace dtrain::train
