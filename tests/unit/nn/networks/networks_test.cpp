#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>

namespace dtrain::nn {
namespace {

Graph network(const std::string& name, int num_layers, Shape image, int classes) {
  return build_network({.name = name, .num_layers = num_layers, .image = image, .classes = classes});
}

std::int64_t parameter_count(const std::string& name, int num_layers, Shape image, int classes) {
  return network(name, num_layers, image, classes).parameter_count;
}

const Node& node_named(const Graph& graph, const std::string& name) {
  return *std::ranges::find(graph.nodes, name, &Node::name);
}

bool has_node(const Graph& graph, const std::string& name) {
  return std::ranges::find(graph.nodes, name, &Node::name) != graph.nodes.end();
}

template <typename Action>
UsageError refusal(Action action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was refused";
  return UsageError("");
}

constexpr Shape kDigits{1, 28, 28}, kCifar{3, 28, 28}, kImageNet{3, 224, 224};

TEST(Networks, HaveThePublishedNumberOfParameters) {
  EXPECT_EQ(parameter_count("mlp", 0, kDigits, 10), 784 * 128 + 128 + 128 * 64 + 64 + 64 * 10 + 10);
  EXPECT_EQ(parameter_count("lenet", 0, kDigits, 10), 431080);
  EXPECT_EQ(parameter_count("vgg", 16, kImageNet, 1000), 138357544);
  EXPECT_EQ(parameter_count("vgg", 19, kImageNet, 1000), 143667240);
  EXPECT_EQ(parameter_count("mobilenet", 0, kImageNet, 1000), 4231976);
  // Its paper's, with a gamma for each of 2 * (64 + 256 + 256) channels that it holds at 1.
  EXPECT_EQ(parameter_count("speednet", 0, {3, 32, 32}, 10),
            24 * 12 + 24 + 9 * (24 * 64 + 64 * 64) + 9 * 256 * (64 + 256 + 256 + 256) + 4 * 576 + 2560);
  EXPECT_EQ(parameter_count("resnet-v1", 34, kImageNet, 1000), 21797672 + 64 * 64 + 2 * 64);  // stage 1 projects too
  EXPECT_EQ(parameter_count("resnet-v1", 50, kImageNet, 1000), 25557032);
  EXPECT_EQ(parameter_count("resnet-v1", 152, kImageNet, 1000), 60192808);
  EXPECT_EQ(parameter_count("resnet-v1.5", 18, kImageNet, 1000), 11689512);
  EXPECT_EQ(parameter_count("resnet-v1.5", 34, kImageNet, 1000), 21797672);
  EXPECT_EQ(parameter_count("resnet-v1.5", 101, kImageNet, 1000), 44549160);
}

TEST(Networks, CountMultiplyAddsLikeTheLiterature) {
  const std::int64_t projection = 64 * 64 * 56 * 56;
  EXPECT_EQ(multiply_adds(network("resnet-v1", 18, kImageNet, 1000)), 1814073344 + projection);
  EXPECT_EQ(multiply_adds(network("vgg", 16, kImageNet, 1000)), 15470264320);
}

TEST(Networks, SmallImagesSelectThreeStagesByDepth) {
  for (const int depth : {8, 20, 32, 44, 50, 56, 110}) {
    const Graph graph = network("resnet", depth, kCifar, 10);
    const int units = (depth - 2) / 6;
    EXPECT_TRUE(has_node(graph, "stage3_unit" + std::to_string(units) + "_conv2")) << depth;
    EXPECT_FALSE(has_node(graph, "stage3_unit" + std::to_string(units + 1) + "_conv1")) << depth;
    EXPECT_FALSE(has_node(graph, "stage3_unit1_conv3")) << depth;
    EXPECT_EQ(node_named(graph, "relu1").output, (Shape{64, 7, 7})) << depth;
  }
}

TEST(Networks, SmallImagesGetBottlenecksFromDepth164) {
  const Graph graph = network("resnet", 164, kCifar, 10);
  EXPECT_EQ(node_named(graph, "stage3_unit18_conv3").output, (Shape{256, 7, 7}));
  EXPECT_EQ(node_named(graph, "stage3_unit18_conv2").output, (Shape{64, 7, 7}));
}

TEST(Networks, HeightDecidesBetweenTheTwoStems) {
  const Graph small = network("resnet", 50, {3, 32, 32}, 10);
  const Graph large = network("resnet", 50, {3, 33, 33}, 10);
  EXPECT_EQ(small.nodes[2].output, (Shape{16, 32, 32}));
  EXPECT_EQ(large.nodes[2].output, (Shape{64, 17, 17}));
  EXPECT_TRUE(has_node(large, "stage4_unit3_conv3"));
}

TEST(Networks, PreActivationNormalizesTheDataWithAFixedGamma) {
  const Graph graph = network("resnet", 8, kCifar, 10);
  EXPECT_EQ(graph.nodes[1].name, "bn_data");
  EXPECT_TRUE(std::get<BatchNorm>(graph.nodes[1].layer).fix_gamma);
  EXPECT_FALSE(std::get<BatchNorm>(node_named(graph, "stage1_unit1_bn1").layer).fix_gamma);
  EXPECT_EQ(node_named(graph, "stage2_unit1_sc").inputs[0], node_named(graph, "stage2_unit1_conv1").inputs[0]);
}

TEST(Networks, WidthScalesEveryStage) {
  const Graph graph = build_network({.name = "resnet-v1", .num_layers = 20, .image = {3, 32, 32}, .width = 64});
  EXPECT_EQ(node_named(graph, "conv0").output.c, 64);
  EXPECT_EQ(node_named(graph, "stage3_unit3_relu3").output, (Shape{256, 8, 8}));
}

TEST(Networks, TorchvisionsBottleneckHalvesTheImageInItsSecondConvolution) {
  const Graph graph = network("resnet-v1.5", 50, kImageNet, 10);
  EXPECT_EQ(node_named(graph, "layer2.0.conv1").output, (Shape{128, 56, 56}));
  EXPECT_EQ(node_named(graph, "layer2.0.conv2").output, (Shape{128, 28, 28}));
  EXPECT_EQ(node_named(graph, "layer4.2.conv3").output, (Shape{2048, 7, 7}));
  EXPECT_TRUE(has_node(graph, "layer1.0.downsample.1"));
  EXPECT_FALSE(has_node(network("resnet-v1.5", 18, kImageNet, 10), "layer1.0.downsample.0"));
  EXPECT_EQ(network("resnet-v1.5", 18, {3, 32, 32}, 10).name, "resnet-v1.5-18");
}

// The numbers that torchvision says of its models for ImageNet (_meta["num_params"]), timm of seresnet50.
TEST(Networks, UnderTorchvisionsNamesHaveItsNumberOfParameters) {
  const std::map<std::string, std::int64_t> known = {
      {"alexnet", 61100840},
      {"densenet121", 7978856},
      {"densenet161", 28681000},
      {"densenet169", 14149480},
      {"densenet201", 20013928},
      {"googlenet", 6624904},
      {"inception_v3", 27161264 - 3326696},  // less its head for training
      {"squeezenet1_0", 1248424},
      {"squeezenet1_1", 1235496},
      {"mobilenet_v3_small", 2542856},
      {"mobilenet_v3_large", 5483032},
      {"efficientnet_b0", 5288548},
      {"efficientnet_b1", 7794184},
      {"efficientnet_b2", 9109994},
      {"efficientnet_b3", 12233232},
      {"efficientnet_b4", 19341616},
      {"regnet_x_400mf", 5495976},
      {"regnet_x_800mf", 7259656},
      {"regnet_x_1_6gf", 9190136},
      {"regnet_x_3_2gf", 15296552},
      {"regnet_y_400mf", 4344144},
      {"regnet_y_800mf", 6432512},
      {"regnet_y_1_6gf", 11202430},
      {"regnet_y_3_2gf", 19436338},
      {"convnext_tiny", 28589128},
      {"convnext_small", 50223688},
      {"convnext_base", 88591464},
      {"vit_b_16", 86567656},
      {"vit_tiny_patch16_224", 5717416},
      {"vit_small_patch16_224", 22050664},
      {"vit_base_patch16_224", 86567656},
      {"seresnet50", 28088024},
      {"seresnext50_32x4d", 27559896},
      {"mobilenet_v2", 3504872},
      {"resnet101", 44549160},
      {"resnet152", 60192808},
      {"resnet18", 11689512},
      {"resnet34", 21797672},
      {"resnet50", 25557032},
      {"resnext101_32x8d", 88791336},
      {"resnext101_64x4d", 83455272},
      {"resnext50_32x4d", 25028904},
      {"vgg11", 132863336},
      {"vgg11_bn", 132868840},
      {"vgg13", 133047848},
      {"vgg13_bn", 133053736},
      {"vgg16", 138357544},
      {"vgg16_bn", 138365992},
      {"vgg19", 143667240},
      {"vgg19_bn", 143678248},
      {"wide_resnet101_2", 126886696},
      {"wide_resnet50_2", 68883240}};
  for (const std::string& name : torch_network_names()) {
    ASSERT_TRUE(known.contains(name)) << name;
    const int size = pretrained_images(name).size;
    EXPECT_EQ(parameter_count(name, 0, {3, size, size}, 1000), known.at(name)) << name;
    EXPECT_EQ(network(name, 0, {3, size, size}, 10).name, name);
  }
}

TEST(Networks, LeaveOutLaterBlocksMore) {
  const auto drops = [](const std::string& name) {
    std::vector<float> found;
    for (const Node& node : build_network({.name = name, .image = kImageNet, .drop_path = 0.3f}).nodes) {
      const auto* dropout = std::get_if<Dropout>(&node.layer);
      if (dropout && dropout->whole_samples) found.push_back(dropout->p);
    }
    return found;
  };
  const std::vector<float> convnext = drops("convnext_tiny"), vit = drops("vit_b_16");
  ASSERT_EQ(convnext.size(), 17U);  // the first block is always there
  EXPECT_FLOAT_EQ(convnext.front(), 0.3f / 17);
  EXPECT_FLOAT_EQ(convnext.back(), 0.3f);
  ASSERT_EQ(vit.size(), 22U);  // twice in each layer
  EXPECT_FLOAT_EQ(vit[2], 0.6f / 11);
  EXPECT_FLOAT_EQ(drops("efficientnet_b0").back(), 0.3f * 14 / 16);  // the last has no residual
  const UsageError error = refusal([] { build_network({.name = "resnet50", .drop_path = 0.1f}); });
  EXPECT_NE(std::string(error.what()).find("setting 'drop-path'"), std::string::npos);
}

TEST(Networks, ThatEndInDenseLayersSayWhichImagesTheyTake) {
  EXPECT_EQ(node_named(network("alexnet", 0, {3, 416, 416}, 10), "avgpool").output, (Shape{256, 6, 6}));
  EXPECT_FALSE(has_node(network("vgg16_bn", 0, kImageNet, 10), "avgpool"));
  const UsageError error = refusal([] { network("vgg11", 0, {3, 96, 96}, 10); });
  EXPECT_NE(std::string(error.what()).find("3x3 pixels are left of images of 96x96"), std::string::npos);
  EXPECT_NE(error.hint().find("224x224"), std::string::npos);
}

TEST(Networks, VggTakesBatchNormAndEveryDepth) {
  for (const int depth : {11, 13, 16, 19}) EXPECT_EQ(network("vgg", depth, {3, 32, 32}, 10).classes(), 10);
  const Graph graph = build_network({.name = "vgg", .num_layers = 11, .image = {3, 32, 32}, .batch_norm = true});
  EXPECT_TRUE(has_node(graph, "bn5_2"));
}

TEST(Networks, DefaultDepthsAreThoseOfTheScripts) {
  EXPECT_EQ(network("resnet", 0, kCifar, 10).name, "resnet-110");
  EXPECT_EQ(network("resnet-v1", 0, kImageNet, 10).name, "resnet-v1-50");
  EXPECT_EQ(network("vgg", 0, kImageNet, 10).name, "vgg-16");
}

TEST(Networks, AMistypedNameGetsTheNearestOne) {
  const UsageError error = refusal([] { network("rensnet", 20, kCifar, 10); });
  EXPECT_STREQ(error.what(), "there is no network \"rensnet\"");
  EXPECT_EQ(error.hint().find("did you mean resnet? `dtrain help networks` lists the names"), 0U);
}

TEST(Networks, AnUnknownDepthGetsTheListOfThoseThatExist) {
  const auto message = [](const char* name, int depth, Shape image) {
    return std::string(refusal([&] { network(name, depth, image, 10); }).what());
  };
  EXPECT_NE(message("resnet", 18, kCifar).find("8, 14, 20"), std::string::npos);
  EXPECT_NE(message("resnet", 170, kCifar).find("164, 173"), std::string::npos);
  EXPECT_NE(message("resnet-v1", 51, kImageNet).find("18, 34, 50, 101, 152, 200, 269"), std::string::npos);
  EXPECT_NE(message("vgg", 12, kImageNet).find("11, 13, 16, 19"), std::string::npos);
  EXPECT_NE(message("lenet", 5, kDigits).find("setting 'num-layers'"), std::string::npos);
}

TEST(Networks, RefuseOptionsThatAreNotTheirs) {
  EXPECT_THROW(build_network({.name = "mlp", .image = kDigits, .width = 16}), UsageError);
  EXPECT_THROW(build_network({.name = "resnet", .num_layers = 20, .batch_norm = true}), UsageError);
  EXPECT_THROW(build_network({.name = "resnet", .num_layers = 20, .width = -1}), UsageError);
}

TEST(Networks, RefuseImagesThatAreTooSmallByNameOfTheLayer) {
  const UsageError error = refusal([] { network("vgg", 11, kCifar, 10); });
  EXPECT_NE(std::string(error.what()).find("pool5"), std::string::npos);
}

}  // namespace
}  // namespace dtrain::nn
