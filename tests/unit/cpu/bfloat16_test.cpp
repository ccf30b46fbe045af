#include "bfloat16.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dtrain::backend::cpu {
namespace {

TEST(Bfloat16, UsesTheMatrixUnitWhereThereIsOne) {
  EXPECT_FALSE(
      widens_bfloat16({.intel = true, .family = 6, .model = 143, .has_avx512_bf16 = true, .has_amx_bf16 = true}));
}

TEST(Bfloat16, IsWidenedWhereTheInstructionsAreMissing) {
  EXPECT_TRUE(widens_bfloat16({.intel = true, .family = 6, .model = 85}));
  EXPECT_TRUE(widens_bfloat16({.intel = false, .family = 15, .model = 33}));
}

TEST(Bfloat16, IsWidenedOnIntelChipsThatLeaveItToAHiddenMatrixUnit) {
  EXPECT_TRUE(widens_bfloat16({.intel = true, .family = 6, .model = 207, .has_avx512_bf16 = true}));
  EXPECT_FALSE(widens_bfloat16({.intel = true, .family = 6, .model = 85, .has_avx512_bf16 = true}));
  EXPECT_FALSE(widens_bfloat16({.intel = false, .family = 15, .model = 17, .has_avx512_bf16 = true}));
}

// They have the same instructions, so the rest of the description is the same.
TEST(Bfloat16, IsDescribedApartWhereChipsComputeOtherBits) {
  const std::string widened = bfloat16_description({.intel = true, .family = 6, .model = 207, .has_avx512_bf16 = true});
  EXPECT_NE(widened, bfloat16_description({.intel = false, .family = 15, .model = 17, .has_avx512_bf16 = true}));
}

}  // namespace
}  // namespace dtrain::backend::cpu
