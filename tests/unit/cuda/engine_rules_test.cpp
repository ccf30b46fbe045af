#include "engine_rules.hpp"

#include <gtest/gtest.h>

namespace dtrain::backend::cuda {
namespace {

constexpr DType kAll[] = {DType::float32, DType::bfloat16, DType::float16};

TEST(CudaEngineRules, RefuseWhatMayGiveOtherBits) {
  for (const DType dtype : kAll) {
    EXPECT_TRUE(may_compute({.name = "1"}, dtype, {}));
    EXPECT_FALSE(may_compute({.name = "1", .same_bits = false}, dtype, {.tf32 = true}));
  }
}

TEST(CudaEngineRules, AllowOtherBitsWhereTheyAreAskedForAndNothingElse) {
  const EngineRules any{.deterministic = false};
  for (const DType dtype : kAll) {
    EXPECT_TRUE(may_compute({.name = "1", .same_bits = false}, dtype, any));
    EXPECT_FALSE(may_compute({.name = "1", .same_bits = false, .narrows_sums = true}, dtype, any));
    EXPECT_FALSE(may_compute({.name = "1", .same_bits = false, .narrows_inputs = true}, dtype, any));
  }
  EXPECT_FALSE(may_compute({.name = "1", .same_bits = false, .tensor_cores = true}, DType::float32, any));
}

TEST(CudaEngineRules, NeverAllowOtherBitsInWhatEachRankComputesForItself) {
  for (const bool any_order : {false, true}) {
    Convolution work;
    work.any_order = any_order;
    EXPECT_EQ(rules_for(work, {.tf32 = true, .deterministic = false, .most_workspace = 7}).deterministic, !any_order);
    EXPECT_TRUE(rules_for(work, {}).deterministic);
    EXPECT_EQ(rules_for(work, {.tf32 = true, .most_workspace = 7}).most_workspace, 7);
    EXPECT_TRUE(rules_for(work, {.tf32 = true}).tf32);
  }
}

TEST(CudaEngineRules, WantAProofOfWhatIsMadeAtRunTimeWhereBitsMustBeTheSame) {
  const EngineFacts shipped{.name = "1"}, made{.name = "2", .made_at_run_time = true};
  Convolution work;
  for (const bool any_order : {false, true}) {
    work.any_order = any_order;
    EXPECT_FALSE(needs_proof(shipped, work, {}));
    EXPECT_TRUE(needs_proof(made, work, {}));
    EXPECT_EQ(needs_proof(made, work, {.deterministic = false}), !any_order);
  }
}

TEST(CudaEngineRules, RefuseWhatRoundsMoreThanTheTypeDoes) {
  EXPECT_FALSE(may_compute({.name = "1", .tensor_cores = true}, DType::float32, {}));
  EXPECT_TRUE(may_compute({.name = "1", .tensor_cores = true}, DType::float32, {.tf32 = true}));
  EXPECT_TRUE(may_compute({.name = "1", .tensor_cores = true}, DType::bfloat16, {}));
  for (const DType dtype : kAll) {
    EXPECT_FALSE(may_compute({.name = "1", .narrows_inputs = true}, dtype, {.tf32 = true}));
    EXPECT_FALSE(may_compute({.name = "1", .narrows_sums = true}, dtype, {.tf32 = true}));
  }
}

using Order = std::vector<std::size_t>;

TEST(CudaEngineRules, KeepTheOrderAndTryNothingTwice) {
  const std::vector<EngineFacts> engines{{.name = "a", .same_bits = false},
                                         {.name = "b"},
                                         {.name = "c", .tensor_cores = true},
                                         {.name = "b"},
                                         {.name = "d"}};
  EXPECT_EQ(engines_to_try(engines, DType::float32, {}, {}), (Order{1, 4}));
  EXPECT_EQ(engines_to_try(engines, DType::bfloat16, {}, {}), (Order{1, 2, 4}));
  EXPECT_EQ(engines_to_try(engines, DType::float32, {.deterministic = false}, {}), (Order{0, 1, 4}));
  EXPECT_EQ(engines_to_try(engines, DType::bfloat16, {}, "d"), (Order{4, 1, 2}));
  EXPECT_EQ(engines_to_try(engines, DType::bfloat16, {}, "a"), (Order{1, 2, 4}));  // is none that may
  EXPECT_EQ(engines_to_try(engines, DType::bfloat16, {}, "e"), (Order{1, 2, 4}));  // is none of cuDNN's
}

TEST(CudaEngineRules, TakeALaterEngineOnlyWhereItIsClearlyFaster) {
  EXPECT_EQ(clearly_fastest(std::vector{1.0}), 0);
  EXPECT_EQ(clearly_fastest(std::vector{1.0, 0.99, 1.2}), 0);
  EXPECT_EQ(clearly_fastest(std::vector{1.0, 0.9, 0.5, 0.495}), 2);
}

}  // namespace
}  // namespace dtrain::backend::cuda
