#include <dtrain/nn/optimizer.hpp>

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::nn {
namespace {

TEST(Optimizer, NamesReadBackAndATypoGetsTheNearest) {
  for (const char* name : {"sgd", "nag", "adam", "adamw"}) EXPECT_STREQ(optimizer_name(parse_optimizer(name)), name);
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
  EXPECT_EQ(optimizer_slots(OptimizerKind::adam), 2);
  EXPECT_EQ(optimizer_slots(OptimizerKind::adamw), 2);
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
