#include "engine_rules.hpp"

#include <gtest/gtest.h>

namespace dtrain::backend::cuda {
namespace {

TEST(CudaEngineRules, RefuseWhatMayGiveOtherBits) {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    EXPECT_TRUE(may_compute({.name = "1"}, dtype));
    EXPECT_FALSE(may_compute({.name = "1", .same_bits = false}, dtype));
  }
}

TEST(CudaEngineRules, RefuseWhatRoundsMoreThanTheTypeDoes) {
  EXPECT_FALSE(may_compute({.name = "1", .tensor_cores = true}, DType::float32));
  EXPECT_TRUE(may_compute({.name = "1", .tensor_cores = true}, DType::bfloat16));
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    EXPECT_FALSE(may_compute({.name = "1", .narrows_inputs = true}, dtype));
    EXPECT_FALSE(may_compute({.name = "1", .narrows_sums = true}, dtype));
  }
}

TEST(CudaEngineRules, KeepTheOrderAndTryNothingTwice) {
  const std::vector<EngineFacts> engines{{.name = "a", .same_bits = false},
                                         {.name = "b"},
                                         {.name = "c", .tensor_cores = true},
                                         {.name = "b"},
                                         {.name = "d"}};
  EXPECT_EQ(engines_to_try(engines, DType::float32), (std::vector<std::size_t>{1, 4}));
  EXPECT_EQ(engines_to_try(engines, DType::bfloat16), (std::vector<std::size_t>{1, 2, 4}));
}

}  // namespace
}  // namespace dtrain::backend::cuda
