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

std::vector<std::string> own_names(const Convolution& work, OwnEngines own, const std::string& preferred = {}) {
  std::vector<std::string> names;
  for (const EngineFacts& engine :
       own_engines_for(work, {.most_workspace = std::uint64_t{1} << 30, .own = own}, preferred)) {
    EXPECT_TRUE(engine.own);
    EXPECT_TRUE(needs_proof(engine, work, {.deterministic = false}));
    names.push_back(engine.name);
  }
  return names;
}

TEST(CudaEngineRules, HaveOwnEnginesWhereTheyAreAskedForOrChosen) {
  using Names = std::vector<std::string>;
  const Convolution work{.shape = ConvolutionShape::one_pixel(98, 64, 256), .dtype = DType::bfloat16};
  EXPECT_EQ(own_names(work, OwnEngines::always), (Names{"wgmma:128x128x64", "wgmma:128x256x64"}));
  EXPECT_EQ(own_names(work, OwnEngines::chosen), Names{});
  EXPECT_EQ(own_names(work, OwnEngines::chosen, "62"), Names{});
  EXPECT_EQ(own_names(work, OwnEngines::chosen, "wgmma:128x256x64"), Names{"wgmma:128x256x64"});
  EXPECT_EQ(own_names(work, OwnEngines::never, "wgmma:128x256x64"), Names{});
  Convolution other = work;
  other.dtype = DType::float32;
  EXPECT_EQ(own_names(other, OwnEngines::always), Names{});
  Convolution weights = work;
  weights.direction = Direction::backward_weights;
  EXPECT_TRUE(own_engines_for(weights, {.most_workspace = 1000, .own = OwnEngines::always}, {}).empty());
  EXPECT_EQ(own_engines(OwnProducts::never, 8), OwnEngines::never);
  EXPECT_EQ(own_engines(OwnProducts::timed, 0), OwnEngines::chosen);
  EXPECT_EQ(own_engines(OwnProducts::timed, 1), OwnEngines::always);
  EXPECT_EQ(own_engines(OwnProducts::first, 0), OwnEngines::always);
}

TEST(CudaEngineRules, AskCudnnForFusedWorkOnlyWhereItShipsThat) {
  float moments[1];
  Convolution work{.shape = ConvolutionShape::one_pixel(98, 64, 256), .dtype = DType::bfloat16};
  EXPECT_TRUE(asks_cudnn(work));
  work.moments = moments;
  EXPECT_FALSE(asks_cudnn(work));
  work.dtype = DType::float16;
  EXPECT_TRUE(asks_cudnn(work));
}

TEST(CudaEngineRules, TakeALaterEngineOnlyWhereItIsClearlyFaster) {
  EXPECT_EQ(clearly_fastest(std::vector{1.0}), 0);
  EXPECT_EQ(clearly_fastest(std::vector{1.0, 0.99, 1.2}), 0);
  EXPECT_EQ(clearly_fastest(std::vector{1.0, 0.9, 0.5, 0.495}), 2);
}

}  // namespace
}  // namespace dtrain::backend::cuda
