#include "weights/timm_names.hpp"

#include <gtest/gtest.h>

namespace dtrain::train {
namespace {

std::string named(const std::string& network, const std::string& layer) {
  return timm_name(network, layer).value_or("-");
}

TEST(TimmNames, OfEfficientNet) {
  const auto name = [](const std::string& layer) { return named("efficientnet_b1", layer); };
  EXPECT_EQ(name("features.0.0"), "conv_stem");
  EXPECT_EQ(name("features.0.1"), "bn1");
  EXPECT_EQ(name("features.1.1.block.0.0"), "blocks.0.1.conv_dw");
  EXPECT_EQ(name("features.1.1.block.1.fc2"), "blocks.0.1.se.conv_expand");
  EXPECT_EQ(name("features.1.1.block.2.1"), "blocks.0.1.bn2");
  EXPECT_EQ(name("features.4.2.block.0.1"), "blocks.3.2.bn1");
  EXPECT_EQ(name("features.4.2.block.1.0"), "blocks.3.2.conv_dw");
  EXPECT_EQ(name("features.4.2.block.2.fc1"), "blocks.3.2.se.conv_reduce");
  EXPECT_EQ(name("features.4.2.block.3.0"), "blocks.3.2.conv_pwl");
  EXPECT_EQ(name("features.4.2.block.3.1"), "blocks.3.2.bn3");
  EXPECT_EQ(name("features.8.1"), "bn2");
  EXPECT_EQ(name("classifier.1"), "classifier");
  EXPECT_EQ(name("features.9.0.block.0.0"), "-");
  EXPECT_EQ(name("features.2.0.block.x.0"), "-");
}

TEST(TimmNames, OfMobileNetV2) {
  const auto name = [](const std::string& layer) { return named("mobilenet_v2", layer); };
  EXPECT_EQ(name("features.1.conv.0.0"), "blocks.0.0.conv_dw");
  EXPECT_EQ(name("features.1.conv.1"), "blocks.0.0.conv_pw");
  EXPECT_EQ(name("features.1.conv.2"), "blocks.0.0.bn2");
  EXPECT_EQ(name("features.6.conv.0.1"), "blocks.2.2.bn1");
  EXPECT_EQ(name("features.17.conv.2"), "blocks.6.0.conv_pwl");
  EXPECT_EQ(name("features.17.conv.3"), "blocks.6.0.bn3");
  EXPECT_EQ(name("features.18.0"), "conv_head");
  EXPECT_EQ(name("features.18.conv.0.0"), "-");
}

TEST(TimmNames, OfRegNet) {
  const auto name = [](const std::string& layer) { return named("regnet_y_400mf", layer); };
  EXPECT_EQ(name("stem.1"), "stem.bn");
  EXPECT_EQ(name("trunk_output.block2.block2-0.proj.0"), "s2.b1.downsample.conv");
  EXPECT_EQ(name("trunk_output.block3.block3-10.f.b.1"), "s3.b11.conv2.bn");
  EXPECT_EQ(name("trunk_output.block3.block3-1.f.se.fc1"), "s3.b2.se.fc1");
  EXPECT_EQ(name("fc"), "head.fc");
}

TEST(TimmNames, OfConvNeXt) {
  const auto name = [](const std::string& layer) { return named("convnext_small", layer); };
  EXPECT_EQ(name("features.0.1"), "stem.1");
  EXPECT_EQ(name("features.5.26.block.0"), "stages.2.blocks.26.conv_dw");
  EXPECT_EQ(name("features.1.0.block.2"), "stages.0.blocks.0.norm");
  EXPECT_EQ(name("features.1.0.block.3"), "stages.0.blocks.0.mlp.fc1");
  EXPECT_EQ(name("features.7.2.block.5"), "stages.3.blocks.2.mlp.fc2");
  EXPECT_EQ(name("features.7.2.layer_scale"), "stages.3.blocks.2.gamma");
  EXPECT_EQ(name("features.2.0"), "stages.1.downsample.0");
  EXPECT_EQ(name("features.6.1"), "stages.3.downsample.1");
  EXPECT_EQ(name("classifier.0"), "head.norm");
  EXPECT_EQ(name("classifier.2"), "head.fc");
  EXPECT_EQ(name("features.9.0"), "-");
  EXPECT_EQ(name("features.1.0.block.4"), "-");
}

TEST(TimmNames, OfVit) {
  const auto name = [](const std::string& layer) { return named("vit_b_16", layer); };
  EXPECT_EQ(name("conv_proj"), "patch_embed.proj");
  EXPECT_EQ(name("class_token"), "cls_token");
  EXPECT_EQ(name("encoder.pos_embedding"), "pos_embed");
  EXPECT_EQ(name("encoder.layers.encoder_layer_11.ln_2"), "blocks.11.norm2");
  EXPECT_EQ(name("encoder.layers.encoder_layer_0.self_attention.in_proj"), "blocks.0.attn.qkv");
  EXPECT_EQ(name("encoder.layers.encoder_layer_0.self_attention.out_proj"), "blocks.0.attn.proj");
  EXPECT_EQ(name("encoder.layers.encoder_layer_0.mlp.3"), "blocks.0.mlp.fc2");
  EXPECT_EQ(name("encoder.ln"), "norm");
  EXPECT_EQ(name("heads.head"), "head");
  EXPECT_EQ(name("encoder.layers.encoder_layer_0.mlp.1"), "-");
}

TEST(TimmNames, AreTorchvisionsElsewhere) { EXPECT_EQ(named("resnet50", "layer1.0.conv1"), "-"); }

}  // namespace
}  // namespace dtrain::train
