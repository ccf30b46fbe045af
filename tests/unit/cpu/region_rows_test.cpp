// Which rows of a value of regions count.
#include "detection/region_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace dtrain::backend::cpu {
namespace {

constexpr int kRegions = 3, kOfRegion = 3, kHeight = kRegions * kOfRegion - 1;
constexpr TensorId kTensorOfRegions = 0, kTensorOfRows = 1;

// A picture with two regions, one without any, one with as many as fit; beside them rows of two numbers, two for each
// row of a region.
class RegionRowsTest : public ::testing::Test {
 protected:
  RegionRowsTest() {
    add_region(0, 0);
    add_region(0, 1);
    for (int region = 0; region < kRegions; ++region) add_region(2, region);
    std::fill(rows(0), rows(3), 7.0f);
  }

  void add_region(int sample, int region) {
    float* const box = floats_.data() + (sample * kRegions + region) * nn::kRegion;
    box[2] = box[3] = 5;
  }
  float* rows(int sample) { return floats_.data() + 3 * kRegions * nn::kRegion + sample * 2 * kHeight * 2; }

  std::vector<float> floats_ = std::vector<float>(3 * (kRegions * nn::kRegion + 2 * kHeight * 2));
  const std::array<Tensor, 2> tensors_{
      Tensor{.shape = {nn::kRegion, kRegions, 1}},
      Tensor{.shape = {1, 2 * kHeight, 2}, .offset = sizeof(float) * 3 * kRegions * nn::kRegion}};
  Context context_{
      .tensors = tensors_, .arena = reinterpret_cast<std::byte*>(floats_.data()), .shard = {}, .key = {}, .count = 3};
};

TEST_F(RegionRowsTest, EndBelowTheLastRegion) {
  const RegionRows rows{kTensorOfRegions, kOfRegion};
  EXPECT_EQ(rows.end(context_, 0, kHeight), 2 * kOfRegion);
  EXPECT_EQ(rows.end(context_, 1, kHeight), 0);
  EXPECT_EQ(rows.end(context_, 2, kHeight), kHeight);
  EXPECT_EQ(RegionRows{}.end(context_, 1, kHeight), kHeight) << "no value of regions";
}

TEST_F(RegionRowsTest, AreClearedBelow) {
  RegionRows{kTensorOfRegions, kOfRegion}.clear_below(context_, kTensorOfRows, kHeight);
  const auto kept = [&](int sample) { return std::count(this->rows(sample), this->rows(sample + 1), 7.0f); };
  EXPECT_EQ(kept(0), 2 * kOfRegion * 2 * 2);
  EXPECT_EQ(kept(1), 0);
  EXPECT_EQ(kept(2), kHeight * 2 * 2);
}

}  // namespace
}  // namespace dtrain::backend::cpu
