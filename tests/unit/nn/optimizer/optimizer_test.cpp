#include <gtest/gtest.h>

#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/optimizer.hpp>

namespace dtrain::nn {
namespace {

TEST(Optimizer, NamesReadBackAndATypoGetsTheNearest) {
  for (const char* name : {"sgd", "nag", "adam", "adamw", "muon", "rmsprop", "adagrad", "lamb", "lars", "adamax",
                           "nadam", "adadelta", "signum", "ftml"})
    EXPECT_STREQ(optimizer_name(parse_optimizer(name)), name);
  try {
    parse_optimizer("adaam");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.hint(), "did you mean adam?");
  }
}

TEST(Optimizer, KeepsOneBufferForMomentumAndTwoForMoments) {
  EXPECT_EQ(optimizer_slots(OptimizerKind::sgd), 1);
  EXPECT_EQ(optimizer_slots(OptimizerKind::nag), 1);
  EXPECT_EQ(optimizer_slots(OptimizerKind::muon), 1);
  EXPECT_EQ(optimizer_slots(OptimizerKind::adam), 2);
  EXPECT_EQ(optimizer_slots(OptimizerKind::adamw), 2);
  EXPECT_EQ(optimizer_slots(OptimizerKind::rmsprop), 1);
  EXPECT_EQ(optimizer_slots(OptimizerKind::adagrad), 1);
  EXPECT_EQ(optimizer_slots(OptimizerKind::lamb), 2);
  EXPECT_EQ(optimizer_slots(OptimizerKind::lars), 1);
  EXPECT_EQ(optimizer_slots(OptimizerKind::adamax), 2);
  EXPECT_EQ(optimizer_slots(OptimizerKind::nadam), 2);
  EXPECT_EQ(optimizer_slots(OptimizerKind::adadelta), 2);
  EXPECT_EQ(optimizer_slots(OptimizerKind::signum), 1);
  EXPECT_EQ(optimizer_slots(OptimizerKind::ftml), 1);
}

TEST(Optimizer, NadamsSharesAreThoseOfItsProducts) {
  const Optimizer rule{.kind = OptimizerKind::nadam, .beta1 = 0.8f};
  double product = 1;
  const auto mu = [&](int t) { return 0.8 * (1 - 0.5 * std::pow(0.96, 0.004 * t)); };
  for (int t = 1; t <= 3000; ++t) {
    product *= mu(t);
    const NadamShares shares = nadam_shares(rule, static_cast<std::uint64_t>(t));
    ASSERT_NEAR(shares.of_gradient, (1 - mu(t)) / (1 - product), 1e-7) << t;
    ASSERT_NEAR(shares.of_mean, mu(t + 1) / (1 - product * mu(t + 1)), 1e-7) << t;
  }
  const NadamShares late = nadam_shares(rule, 100'000'000);
  EXPECT_NEAR(late.of_gradient, 0.2, 1e-7);
  EXPECT_NEAR(late.of_mean, 0.8, 1e-7);
}

TEST(Optimizer, SurvivesJsonBitForBit) {
  const Optimizer optimizer{OptimizerKind::adamw, 0.1f + 0.2f, 5e-4f, 0.95f, 0.98f, 1.0f / 3e7f};
  const Optimizer back = optimizer_from_json(Json::parse(to_json(optimizer).dump(), "test"));
  EXPECT_EQ(back.kind, optimizer.kind);
  EXPECT_EQ(back.momentum, optimizer.momentum);
  EXPECT_EQ(back.weight_decay, optimizer.weight_decay);
  EXPECT_EQ(back.beta1, optimizer.beta1);
  EXPECT_EQ(back.beta2, optimizer.beta2);
  EXPECT_EQ(back.epsilon, optimizer.epsilon);
  EXPECT_NE(to_json(Optimizer{}).dump().find("\"momentum\":0.9,"), std::string::npos);
}

TEST(Optimizer, FactorsAndMuonsNumbersSurviveJsonBitForBit) {
  const Optimizer rule{.kind = OptimizerKind::muon,
                       .bias_lr_factor = 1.0f / 3,
                       .head_lr_factor = 2.79f,
                       .newton_schulz = {.steps = 5, .a = 3.4576f, .b = -4.7391f, .c = 2.0843f},
                       .rest_momentum = 0.85f};
  const Optimizer back = optimizer_from_json(Json::parse(to_json(rule).dump(), "test"));
  EXPECT_EQ(back.bias_lr_factor, rule.bias_lr_factor);
  EXPECT_EQ(back.head_lr_factor, rule.head_lr_factor);
  EXPECT_EQ(back.newton_schulz.steps, rule.newton_schulz.steps);
  EXPECT_EQ(back.newton_schulz.a, rule.newton_schulz.a);
  EXPECT_EQ(back.newton_schulz.b, rule.newton_schulz.b);
  EXPECT_EQ(back.newton_schulz.c, rule.newton_schulz.c);
  EXPECT_EQ(back.rest_momentum, rule.rest_momentum);
}

TEST(Optimizer, CutsAndAveragesSurviveJsonBitForBit) {
  const Optimizer rule{.clip_norm = 1.0f / 3, .clip_gradient = 0.7f, .average = 0.9998f, .average_warms_up = true};
  const Optimizer back = optimizer_from_json(Json::parse(to_json(rule).dump(), "test"));
  EXPECT_EQ(back.clip_norm, rule.clip_norm);
  EXPECT_EQ(back.clip_gradient, rule.clip_gradient);
  EXPECT_EQ(back.average, rule.average);
  EXPECT_TRUE(back.average_warms_up);
}

TEST(Optimizer, ARuleBringsWhatIsUsualForIt) {
  EXPECT_EQ(with_kind({}, OptimizerKind::rmsprop).beta2, 0.9f);
  EXPECT_EQ(with_kind({}, OptimizerKind::lamb).epsilon, 1e-6f);
  EXPECT_EQ(with_kind({}, OptimizerKind::adagrad).epsilon, 1e-7f);
  EXPECT_EQ(with_kind({}, OptimizerKind::adadelta).beta2, 0.9f);
  EXPECT_EQ(with_kind({}, OptimizerKind::adadelta).epsilon, 1e-5f);
  EXPECT_EQ(with_kind({}, OptimizerKind::ftml).beta1, 0.6f);
  EXPECT_EQ(with_kind(with_kind({}, OptimizerKind::ftml), OptimizerKind::adam).beta1, Optimizer{}.beta1);
  const Optimizer back = with_kind(with_kind({.momentum = 0.5f}, OptimizerKind::rmsprop), OptimizerKind::adam);
  EXPECT_EQ(back.beta2, Optimizer{}.beta2);
  EXPECT_EQ(back.epsilon, Optimizer{}.epsilon);
  EXPECT_EQ(back.momentum, 0.5f);
}

TEST(Optimizer, TheAverageMayBeginWithSmallDecays) {
  EXPECT_EQ(average_decay({.average = 0.75f}, 1), 0.75);
  const Optimizer rule{.average = 0.75f, .average_warms_up = true};
  EXPECT_EQ(average_decay(rule, 1), 0);
  EXPECT_NEAR(average_decay(rule, 2), 1 - std::pow(2.0, -2.0 / 3), 1e-13);
  EXPECT_NEAR(average_decay(rule, 7), 1 - std::pow(7.0, -2.0 / 3), 1e-13);
  EXPECT_EQ(average_decay(rule, 9), 0.75);  // 1 - 9^(-2/3) = 0.769
}

TEST(Optimizer, ReadsDocumentsThatAreOlderThanMuon) {
  const Json old =
      Json::parse(R"({"kind":"nag","momentum":0.8,"weight_decay":0,"beta1":0.9,"beta2":0.999,"epsilon":1e-8})", "test");
  const Optimizer rule = optimizer_from_json(old);
  EXPECT_EQ(rule.momentum, 0.8f);
  EXPECT_EQ(rule.bias_lr_factor, 1);
  EXPECT_EQ(rule.newton_schulz.steps, NewtonSchulz{}.steps);
}

std::string refusal(const Optimizer& rule) {
  try {
    require_valid(rule);
    return "none";
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(Optimizer, NamesTheFactorAndTheNumberOfMuonThatMakeNoSense) {
  EXPECT_EQ(refusal({.bias_lr_factor = 0}), "setting 'bias-lr-factor': must be more than 0 and at most 1000000, not 0");
  EXPECT_EQ(refusal({.head_lr_factor = 2e6f}),
            "setting 'head-lr-factor': must be more than 0 and at most 1000000, not 2000000");
  EXPECT_EQ(refusal({.clip_norm = -1}), "setting 'clip-norm': must be 0 or more, not -1");
  EXPECT_EQ(refusal({.average = 1}), "setting 'ema': must be at least 0 and less than 1, not 1");
  EXPECT_EQ(refusal({.newton_schulz = {.steps = 0}}), "setting 'muon-steps': must be between 1 and 20, not 0");
  EXPECT_EQ(refusal({.newton_schulz = {.b = NAN}}), "setting 'muon-coefficients': must be between -10 and 10, not nan");
  EXPECT_EQ(refusal({.rest_momentum = 1}), "setting 'muon-rest-mom': must be at least 0 and less than 1, not 1");
}

TEST(Optimizer, RefusesValuesThatMakeNoSense) {
  EXPECT_NO_THROW(require_valid(Optimizer{}));
  EXPECT_THROW(require_valid(Optimizer{.momentum = 1}), UsageError);
  EXPECT_THROW(require_valid(Optimizer{.weight_decay = -1e-4f}), UsageError);
  EXPECT_THROW(require_valid(Optimizer{.beta2 = 1}), UsageError);
  EXPECT_THROW(require_valid(Optimizer{.epsilon = 0}), UsageError);
  EXPECT_THROW(optimizer_from_json(Json::object({{"kind", "sgd"}})), DataError);
}

}  // namespace
}  // namespace dtrain::nn
