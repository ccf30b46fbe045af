#include <gtest/gtest.h>

#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/parameter_groups.hpp>

namespace dtrain::nn {
namespace {

ParameterGroup group_of(const Graph& graph, std::string_view name) {
  for (std::size_t k = 0; k < graph.parameters.size(); ++k) {
    if (graph.parameters[k].name == name) return parameter_groups(graph)[k];
  }
  throw std::out_of_range("no such tensor");
}

const WeightMatrix& matrix_of(const Graph& graph, const std::vector<WeightMatrix>& matrices, std::string_view name) {
  for (const TensorView& view : graph.parameters) {
    if (view.name != name) continue;
    for (const WeightMatrix& matrix : matrices) {
      if (matrix.first == view.offset) return matrix;
    }
  }
  throw std::out_of_range("no such matrix");
}

TEST(ParameterGroups, TheHeadIsTheLastLayersWeightAndAllElseThatIsNoWeightIsAVector) {
  const Graph lenet = build_network({.name = "lenet", .image = {1, 28, 28}, .classes = 10});
  EXPECT_EQ(group_of(lenet, "convolution0_weight"), ParameterGroup::matrix);
  EXPECT_EQ(group_of(lenet, "fullyconnected0_weight"), ParameterGroup::matrix);
  EXPECT_EQ(group_of(lenet, "fullyconnected1_weight"), ParameterGroup::head);
  EXPECT_EQ(group_of(lenet, "fullyconnected1_bias"), ParameterGroup::vector);
}

TEST(ParameterGroups, FactorsAreThoseOfTheGroup) {
  const Optimizer rule{.bias_lr_factor = 3, .head_lr_factor = 5};
  EXPECT_EQ(lr_factor(rule, ParameterGroup::matrix), 1);
  EXPECT_EQ(lr_factor(rule, ParameterGroup::vector), 3);
  EXPECT_EQ(lr_factor(rule, ParameterGroup::head), 5);
}

TEST(LayerShares, FallFromBlockToBlockTowardsTheImages) {
  const auto share_of = [](const Graph& graph, std::string_view name) {
    const std::vector<float> shares = layer_shares(graph, 0.5f);
    for (std::size_t i = 0; i < shares.size(); ++i) {
      if (graph.parameters[i].name == name) return shares[i];
    }
    throw std::out_of_range("no such tensor");
  };
  const Graph resnet = build_network({.name = "resnet18", .image = {3, 64, 64}, .classes = 10});
  EXPECT_EQ(share_of(resnet, "fc_weight"), 1);
  EXPECT_EQ(share_of(resnet, "layer4.1.conv2_weight"), 0.5f);
  EXPECT_EQ(share_of(resnet, "layer4.1.bn1_gamma"), 0.5f);
  EXPECT_EQ(share_of(resnet, "layer4.0.downsample.0_weight"), 0.25f);
  EXPECT_EQ(share_of(resnet, "conv1_weight"), 1 / 512.0f);  // nine blocks before the last layer
  EXPECT_EQ(share_of(resnet, "bn1_gamma"), 1 / 512.0f);
  const Graph vgg = build_network({.name = "vgg11", .image = {3, 224, 224}, .classes = 10});
  EXPECT_EQ(share_of(vgg, "features.0_weight"), 1 / 1024.0f);
  const Graph mxnet = build_network({.name = "resnet-v1", .num_layers = 20, .image = {3, 28, 28}, .classes = 10});
  EXPECT_EQ(share_of(mxnet, "stage3_unit3_conv1_weight"), 0.5f);
  EXPECT_EQ(layer_shares(resnet, 1), std::vector<float>(resnet.parameters.size(), 1));
}

TEST(WeightMatrices, AreOneForEachGroupAndTheHeadIsNone) {
  GraphBuilder b("groups", {6, 5, 5});
  const int conv = b.add("conv", Convolution{.out = 8, .kernel_h = 3, .kernel_w = 2, .groups = 2}, {b.input()});
  const Graph graph = b.finish(b.add("logits", Dense{.out = 4}, {conv}));
  const std::vector<WeightMatrix> matrices = weight_matrices(graph);
  ASSERT_EQ(matrices.size(), 2u);
  for (const WeightMatrix& matrix : matrices) {
    EXPECT_EQ(matrix.rows, 4);
    EXPECT_EQ(matrix.columns, 3 * 3 * 2);
  }
  EXPECT_EQ(matrices[1].first, matrices[0].first + 4 * 18);
}

// conv -> relu -> pool -> norm hides the factor; a bias, another reader or a tanh on the way does not.
TEST(WeightMatrices, AreScaleFreeWhereOnlyBatchNormsFollow) {
  GraphBuilder b("scales", {3, 8, 8});
  const Convolution plain{.out = 4}, biased{.out = 4, .bias = true};
  const int hidden = b.add("hidden", plain, {b.input()});
  const int relu = b.add("relu", Activation{}, {hidden});
  const int pool = b.add("pool", Pooling{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}, {relu});
  const int norm = b.add("norm", BatchNorm{}, {pool});
  const int with_bias = b.add("norm2", BatchNorm{}, {b.add("with_bias", biased, {norm})});
  const int curve = b.add("tanh", Activation{.kind = ActivationKind::tanh}, {b.add("curved", plain, {with_bias})});
  const int twice = b.add("twice", plain, {b.add("norm3", BatchNorm{}, {curve})});
  const int sum = b.add("sum", Add{}, {twice, b.add("norm4", BatchNorm{}, {twice})});
  const Graph graph = b.finish(b.add("logits", Dense{.out = 4}, {sum}));
  const std::vector<WeightMatrix> matrices = weight_matrices(graph);
  EXPECT_TRUE(matrix_of(graph, matrices, "hidden_weight").scale_free);
  for (const char* name : {"with_bias_weight", "curved_weight", "twice_weight"}) {
    EXPECT_FALSE(matrix_of(graph, matrices, name).scale_free) << name;
  }
}

}  // namespace
}  // namespace dtrain::nn
