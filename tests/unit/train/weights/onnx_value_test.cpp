#include "weights/onnx_value.hpp"

#include <gtest/gtest.h>

#include "weights/tensor_views.hpp"

namespace dtrain::train {
namespace {

using enum OnnxAxis;

// Of 5 samples with 12 channels and 2 x 3 pixels.
OnnxLayout image() { return image_layout(5, {12, 2, 3}); }

TEST(OnnxValue, SplitsTheChannelsOfTokensIntoHeads) {
  const auto tokens = reshaped(transposed(*reshaped(image(), {5, 12, 6}), {0, 2, 1}), {5, 6, 3, 2, 2});
  ASSERT_TRUE(tokens);
  const OnnxLayout expected = {
      {{batch, 5, 1}}, {{pixel, 6, 1}}, {{channel, 3, 4}}, {{channel, 2, 2}}, {{channel, 2, 1}}};
  EXPECT_EQ(*tokens, expected);
  EXPECT_EQ(extents_of(*tokens), (Extents{5, 6, 3, 2, 2}));
  EXPECT_EQ(reshaped(*tokens, {5, 6, 12})->back(), (std::vector<OnnxPart>{{channel, 12, 1}}));
}

TEST(OnnxValue, KeepsTheOrderOfWhatStandsInOneAxis) {
  const OnnxLayout turned = transposed(image(), {2, 3, 0, 1});
  const auto flat = reshaped(turned, {30, 12});
  EXPECT_EQ((*flat)[0], (std::vector<OnnxPart>{{pixel, 6, 1}, {batch, 5, 1}}));
  EXPECT_EQ(*reshaped(*flat, {2, 3, 5, 12}), turned);
}

TEST(OnnxValue, HasNoPartOfAnExtentOf1) {
  EXPECT_EQ(image_layout(1, {4, 1, 1}), (OnnxLayout{{}, {{channel, 4, 1}}, {}, {}}));
  EXPECT_EQ(reshaped(image_layout(1, {4, 1, 1}), {1, 1, 4, 1})->at(2), (std::vector<OnnxPart>{{channel, 4, 1}}));
  EXPECT_TRUE(is_whole({}, channel, 1));
}

TEST(OnnxValue, CannotBeReshapedAcrossItsParts) {
  EXPECT_FALSE(reshaped(image(), {5, 12, 7}));
  EXPECT_FALSE(reshaped(image(), {5, 8, 9}));
  EXPECT_FALSE(reshaped(image(), {5, 12, 6, 2}));
  EXPECT_FALSE(reshaped(image(), {0, 12, 6}));
}

ForeignTensor packed(std::vector<std::int64_t> shape) {
  return {.name = "t", .shape = shape, .strides = packed_strides(shape), .dtype = "F32", .bytes = {}};
}

TEST(TensorViews, ReshapeWhereStridesLeadToTheElements) {
  const ForeignTensor turned = transposed(packed({1, 6, 4}), {0, 2, 1});
  EXPECT_EQ(turned.strides, (std::vector<std::int64_t>{24, 1, 4}));
  EXPECT_EQ(reshaped(turned, {4, 2, 3})->strides, (std::vector<std::int64_t>{1, 12, 4}));
  EXPECT_EQ(reshaped(turned, {4, 1, 6})->strides[2], 4);
  EXPECT_FALSE(reshaped(turned, {24}));
  EXPECT_FALSE(reshaped(turned, {4, 5}));
}

TEST(TensorViews, RepeatElementsByAStrideOf0) {
  const auto wide = broadcast(packed({1, 4}), {7, 1, 4});
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->shape, (std::vector<std::int64_t>{7, 1, 4}));
  EXPECT_EQ(wide->strides[0], 0);
  EXPECT_FALSE(broadcast(packed({3, 4}), {2, 4}));
}

}  // namespace
}  // namespace dtrain::train
