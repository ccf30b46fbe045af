#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {
namespace {

Shape pooled(Pooling layer, int size) {
  GraphBuilder builder("graph", {1, size, size});
  layer.kernel_h = layer.kernel_w = layer.stride_h = layer.stride_w = 2;
  layer.pad_h = layer.pad_w = 1;
  return builder.shape(builder.add("pool", layer, {builder.input()}));
}

// 2x2 windows every 2 pixels of 1 + 3 + 1: two fit, a third would start on the last column of padding.
TEST(GraphBuilder, RefusesAPoolingWindowThatHoldsOnlyPadding) {
  EXPECT_EQ(pooled({}, 3), (Shape{1, 2, 2}));
  EXPECT_THROW(pooled({.full = true}, 3), UsageError);
  EXPECT_EQ(pooled({.full = true}, 4), (Shape{1, 3, 3}));
}

TEST(GraphBuilder, ConcatAddsChannelsOfImagesOfOneSize) {
  GraphBuilder builder("graph", {3, 8, 6});
  const int small = builder.add("small", Convolution{.out = 4, .stride_h = 2, .stride_w = 2}, {0});
  EXPECT_EQ(builder.shape(builder.add("three", Concat{}, {0, 0, 0})), (Shape{9, 8, 6}));
  EXPECT_THROW(builder.add("one", Concat{}, {0}), UsageError);
  EXPECT_THROW(builder.add("unequal", Concat{}, {0, small}), UsageError);
}

TEST(GraphBuilder, MultiplyTakesOneFactorForEachChannel) {
  GraphBuilder builder("graph", {3, 8, 6});
  const int means = builder.add("means", Pooling{.kind = PoolingKind::average, .global = true}, {0});
  EXPECT_EQ(builder.shape(builder.add("scaled", Multiply{}, {0, means})), (Shape{3, 8, 6}));
  EXPECT_THROW(builder.add("whole", Multiply{}, {0, 0}), UsageError);
  EXPECT_THROW(builder.add("turned", Multiply{}, {means, 0}), UsageError);
}

TEST(GraphBuilder, WindowsReachAsFarAsTheyAreDilatedAndPadded) {
  GraphBuilder builder("graph", {2, 9, 7});
  const Convolution wide{.out = 4, .kernel_h = 3, .kernel_w = 2, .pad_w = 1, .dilation_h = 3, .dilation_w = 2};
  EXPECT_EQ(builder.shape(builder.add("dilated", wide, {0})), (Shape{4, 3, 7}));
  Convolution uneven{.out = 4, .kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .extra_h = 1, .extra_w = 2};
  EXPECT_EQ(builder.shape(builder.add("uneven", uneven, {0})), (Shape{4, 4, 4}));
  EXPECT_FALSE(uneven.is_plain());
  uneven.extra_w = -1;
  EXPECT_THROW(builder.add("negative", uneven, {0}), UsageError);
  EXPECT_THROW(builder.add("too_far", Convolution{.out = 4, .kernel_h = 2, .dilation_h = 9}, {0}), UsageError);
  EXPECT_THROW(builder.add("none", Convolution{.out = 4, .dilation_h = 0}, {0}), UsageError);
  EXPECT_THROW(builder.add("dense", Convolution{.out = 4, .is_dense = true, .extra_h = 1}, {0}), UsageError);
}

TEST(GraphBuilder, LocalResponseNormsTakeAnOddNumberOfChannels) {
  GraphBuilder builder("graph", {6, 4, 3});
  EXPECT_EQ(builder.shape(builder.add("norm", LocalResponseNorm{}, {0})), (Shape{6, 4, 3}));
  EXPECT_THROW(builder.add("even", LocalResponseNorm{.size = 4}, {0}), UsageError);
  EXPECT_THROW(builder.add("bias", LocalResponseNorm{.bias = 0}, {0}), UsageError);
  EXPECT_THROW(builder.add("beta", LocalResponseNorm{.beta = -1}, {0}), UsageError);
}

TEST(GraphBuilder, TokensArePixelsInOneRow) {
  GraphBuilder builder("graph", {6, 4, 3});
  const int tokens = builder.add("token", ClassToken{}, {0});
  EXPECT_EQ(builder.shape(tokens), (Shape{6, 1, 13}));
  EXPECT_EQ(builder.shape(builder.add("attention", Attention{.heads = 2}, {tokens})), (Shape{2, 1, 13}));
  EXPECT_EQ(builder.shape(builder.add("first", FirstToken{}, {tokens})), (Shape{6, 1, 1}));
  EXPECT_THROW(builder.add("heads", Attention{.heads = 4}, {tokens}), UsageError);
  EXPECT_THROW(builder.add("none", Attention{.heads = 0}, {tokens}), UsageError);
  EXPECT_THROW(builder.add("epsilon", LayerNorm{.epsilon = 0}, {tokens}), UsageError);
}

TEST(GraphBuilder, ALayerThatIsNothingButATensorGivesItItsName) {
  GraphBuilder builder("graph", {6, 2, 2});
  const int scaled = builder.add("block.layer_scale", LayerScale{}, {0});
  const Graph graph = builder.finish(builder.add("fc", Dense{2}, {builder.add("position", Position{}, {scaled})}));
  EXPECT_EQ(graph.parameters[0].name, "block.layer_scale");
  EXPECT_EQ(graph.parameters[1].name, "position");
  EXPECT_EQ(graph.parameters[1].shape, (std::vector<std::int64_t>{1, 4, 6}));
  EXPECT_FALSE(graph.parameters[1].decays());
}

}  // namespace
}  // namespace dtrain::nn
