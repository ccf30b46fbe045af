#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <dtrain/nn/freeze.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/nn/parameter_groups.hpp>

#include "nn/same_graph.hpp"

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

// What a detector of other classes has anew, and not what moves boxes in the last place.
TEST(ParameterGroups, TheHeadsOfADetectorAreThoseThatCountClasses) {
  const auto heads = [](const char* name) {
    const int proposals = has_proposals(name) ? 64 : 0;
    const Graph graph = build_network(
        {.name = name, .image = {3, 64, 64}, .classes = 2, .backbone = "resnet-18", .proposals = proposals});
    const std::vector<ParameterGroup> groups = parameter_groups(graph);
    std::vector<std::string> names;
    for (std::size_t k = 0; k < groups.size(); ++k) {
      if (groups[k] == ParameterGroup::head) names.push_back(graph.parameters[k].name);
    }
    return names;
  };
  EXPECT_EQ(heads("retinanet"), (std::vector<std::string>{"head.classification_head.cls_logits_weight"}));
  std::vector<std::string> two_stages{"roi_heads.box_predictor.cls_score_weight",
                                      "roi_heads.box_predictor.bbox_pred_weight"};
  EXPECT_EQ(heads("faster-rcnn"), two_stages);
  two_stages.emplace_back("roi_heads.mask_predictor.mask_fcn_logits_weight");
  EXPECT_EQ(heads("mask-rcnn"), two_stages);
}

TEST(ParameterGroups, FactorsAreThoseOfTheGroup) {
  const Optimizer rule{.bias_lr_factor = 3, .head_lr_factor = 5};
  EXPECT_EQ(lr_factor(rule, ParameterGroup::matrix), 1);
  EXPECT_EQ(lr_factor(rule, ParameterGroup::vector), 3);
  EXPECT_EQ(lr_factor(rule, ParameterGroup::head), 5);
  EXPECT_EQ(lr_factor(rule, ParameterGroup::weight), 1);
}

TEST(ParameterGroups, WeightsDecayAndGammasDoButWithLamb) {
  const auto decay = [](OptimizerKind kind, TensorRole role) {
    return decay_of({.kind = kind, .weight_decay = 0.5f}, TensorView{"t", {1}, role, 0, 1});
  };
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::lars, OptimizerKind::lamb}) {
    EXPECT_EQ(decay(kind, TensorRole::weight), 0.5f);
    EXPECT_EQ(decay(kind, TensorRole::gamma), kind == OptimizerKind::lamb ? 0 : 0.5f);
    EXPECT_EQ(decay(kind, TensorRole::bias), 0);
    EXPECT_EQ(decay(kind, TensorRole::beta), 0);
  }
}

// Muon leaves the tensors of group matrix to the steps of matrices, and moves all others by nag.
TEST(ParameterGroups, MatricesAreThoseThatMuonMovesAsMatrices) {
  for (const std::string& name : network_names()) {
    const Graph graph = build_network({.name = name, .image = images_for(name), .classes = 10});
    const std::vector<ParameterGroup> groups = parameter_groups(graph);
    std::vector<std::int64_t> moved(groups.size(), 0);
    for (const WeightMatrix& matrix : weight_matrices(graph)) {
      const auto behind = std::ranges::upper_bound(graph.parameters, matrix.first, {}, &TensorView::offset);
      moved[static_cast<std::size_t>(behind - graph.parameters.begin()) - 1] += matrix.size();
    }
    for (const Node& node : graph.nodes) {
      for (std::size_t which = 0; which < node.parameters.size(); ++which) {
        if (is_held(node, which)) continue;
        const auto k = static_cast<std::size_t>(node.parameters[which]);
        const TensorView& view = graph.parameters[k];
        EXPECT_EQ(moved[k], groups[k] == ParameterGroup::matrix ? view.size : 0) << name << ": " << view.name;
        const bool is_weight = view.role == TensorRole::weight;
        EXPECT_EQ(groups[k] != ParameterGroup::vector, is_weight) << name << ": " << view.name;
      }
    }
  }
}

float share_of(const Graph& graph, std::string_view name) {
  const std::vector<float> shares = layer_shares(graph, 0.5f);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (graph.parameters[i].name == name) return shares[i];
  }
  throw std::out_of_range("no such tensor");
}

TEST(LayerShares, FallFromBlockToBlockTowardsTheImages) {
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

TEST(LayerShares, AreOneForAllOfABlockThatBeginsWithANorm) {
  const Graph vit = build_network({.name = "vit_b_16", .image = {3, 32, 32}, .classes = 10});
  const std::string last = "encoder.layers.encoder_layer_11.";
  EXPECT_EQ(share_of(vit, last + "ln_1_gamma"), 0.5f);
  EXPECT_EQ(share_of(vit, last + "ln_1_gamma"), share_of(vit, last + "mlp.0_weight"));
  const Graph densenet = build_network({.name = "densenet121", .image = {3, 64, 64}, .classes = 10});
  EXPECT_EQ(share_of(densenet, "features.denseblock4.denselayer16.norm1_gamma"),
            share_of(densenet, "features.denseblock4.denselayer16.conv1_weight"));
  const Graph resnet = build_network({.name = "resnet", .num_layers = 20, .image = {3, 28, 28}, .classes = 10});
  EXPECT_EQ(share_of(resnet, "stage3_unit3_bn1_gamma"), share_of(resnet, "stage3_unit3_conv1_weight"));
}

TEST(LayerShares, AreOneForParallelBranches) {
  const Graph inception = build_network({.name = "inception_v3", .image = {3, 128, 128}, .classes = 10});
  EXPECT_EQ(share_of(inception, "Mixed_7c.branch1x1.conv_weight"), 0.5f);
  EXPECT_EQ(share_of(inception, "Mixed_7c.branch3x3dbl_2.bn_gamma"), 0.5f);
  EXPECT_EQ(share_of(inception, "Conv2d_1a_3x3.conv_weight"), 1 / 65536.0f);  // 15 blocks lie between it and the last
  const Graph googlenet = build_network({.name = "googlenet", .image = {3, 64, 64}, .classes = 10});
  EXPECT_EQ(share_of(googlenet, "inception5b.branch1.conv_weight"), 0.5f);
  EXPECT_EQ(share_of(googlenet, "inception5b.branch4.1.conv_weight"), 0.5f);
  EXPECT_EQ(share_of(googlenet, "conv1.conv_weight"), 1 / 4096.0f);
}

// The heads learn alike, and so do the branches of the pyramid below them; the backbone then counts as a classifier.
TEST(LayerShares, CountTheHeadsOfADetectorAsOneBlockAndItsPyramidAsOne) {
  const auto detector = [](const char* name) {
    const int proposals = has_proposals(name) ? 64 : 0;
    return build_network(
        {.name = name, .image = {3, 64, 64}, .classes = 2, .backbone = "resnet-18", .proposals = proposals});
  };
  const Graph mask = detector("mask-rcnn"), faster = detector("faster-rcnn"), retina = detector("retinanet");
  for (const Graph* graph : {&mask, &faster, &retina}) {
    EXPECT_EQ(share_of(*graph, "backbone.fpn.inner_blocks.1.0_weight"), 0.5f) << graph->name;
    EXPECT_EQ(share_of(*graph, "backbone.fpn.layer_blocks.2.0_bias"), 0.5f) << graph->name;
    EXPECT_EQ(share_of(*graph, "backbone.body.layer4.1.conv2_weight"), 0.25f) << graph->name;
    EXPECT_EQ(share_of(*graph, "backbone.body.layer4.0.conv1_weight"), 0.125f) << graph->name;
    EXPECT_EQ(share_of(*graph, "backbone.body.bn1_gamma"), 1 / 1024.0f) << graph->name;  // nine blocks of a resnet-18
  }
  for (const Graph* graph : {&mask, &faster}) {
    for (const char* name : {"rpn.head.conv.0.0_weight", "rpn.head.cls_logits_weight", "rpn.head.bbox_pred_bias",
                             "roi_heads.box_head.fc6_weight", "roi_heads.box_predictor.cls_score_weight"}) {
      EXPECT_EQ(share_of(*graph, name), 1) << graph->name << ": " << name;
    }
  }
  for (const char* name : {"mask_head.0.0_weight", "mask_predictor.conv5_mask_weight"}) {
    EXPECT_EQ(share_of(mask, std::string("roi_heads.") + name), 1) << name;
  }
  EXPECT_EQ(share_of(retina, "backbone.fpn.extra_blocks.p7_weight"), 0.5f);
  EXPECT_EQ(share_of(retina, "head.classification_head.conv.0.0_weight"), 1);
  EXPECT_EQ(share_of(retina, "head.regression_head.bbox_reg_weight"), 1);
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

// It computes with its running statistics: muon must not rescale the weight before it.
TEST(WeightMatrices, AreNotScaleFreeBeforeAFrozenBatchNorm) {
  Graph resnet = build_network({.name = "resnet18", .image = {3, 64, 64}, .classes = 10});
  constexpr std::string_view kLast = "layer4.1.conv2_weight", kFirst = "layer1.0.conv1_weight";
  const std::vector<WeightMatrix> learning = weight_matrices(resnet);
  EXPECT_TRUE(matrix_of(resnet, learning, kLast).scale_free);
  EXPECT_TRUE(matrix_of(resnet, learning, kFirst).scale_free);
  freeze(resnet, "layer4.1.bn2");
  const std::vector<WeightMatrix> frozen = weight_matrices(resnet);
  EXPECT_FALSE(matrix_of(resnet, frozen, kLast).scale_free);
  EXPECT_TRUE(matrix_of(resnet, frozen, kFirst).scale_free);
}

}  // namespace
}  // namespace dtrain::nn
