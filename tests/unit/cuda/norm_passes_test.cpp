// How often a batch norm goes through memory: what its operations touch, without a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <dtrain/nn/networks.hpp>

#include "lowering.hpp"

namespace dtrain::backend::cuda {
namespace {

nn::Graph resnet(int layers, nn::Shape image) {
  return nn::build_network({.name = "resnet-v1", .num_layers = layers, .image = image});
}

// Of operations whose names end so, by the names of their nodes.
std::map<std::string, const Operation*> operations_of(const Program& program, const std::string& part) {
  std::map<std::string, const Operation*> found;
  for (const Operation& operation : program.operations()) {
    if (operation.name.ends_with(part)) {
      found[operation.name.substr(0, operation.name.size() - part.size())] = &operation;
    }
  }
  return found;
}

bool touches(const Operation& operation, TensorId tensor) {
  return std::ranges::find(operation.touches, tensor) != operation.touches.end();
}

TEST(CudaNormPasses, BackwardReadsTheOutputOfNoNorm) {
  const Model model(resnet(20, {3, 32, 32}), DType::bfloat16, 1);
  const Program program = lower_training(model);
  const auto forward = operations_of(program, ".forward");
  for (const char* const part : {".gradient_sums", ".gradient"}) {
    for (const auto& [node, gradient] : operations_of(program, part)) {
      if (std::string(gradient->kind) != "batch_norm" || !forward.contains(node)) continue;
      const TensorId y = forward.at(node)->touches.at(2);
      EXPECT_FALSE(touches(*gradient, y)) << node << part;
    }
  }
}

// The norm of a shortcut is computed where it is added: once in each stage of a network.
TEST(CudaNormPasses, TheNormOfAShortcutWritesNothing) {
  const Model model(resnet(50, {3, 224, 224}), DType::bfloat16, 1);
  const Program program = lower_training(model);
  const auto forward = operations_of(program, ".forward"), statistics = operations_of(program, ".statistics");
  constexpr int kStages = 4;
  int without = 0;
  for (const auto& [node, operation] : statistics) without += forward.contains(node) ? 0 : 1;
  EXPECT_EQ(without, kStages);
}

// The pooling of the stem is computed with the norm before it: what is left is the one before the logits.
TEST(CudaNormPasses, TheStemWritesOnlyWhatItsPoolingLeaves) {
  const Model model(resnet(50, {3, 224, 224}), DType::bfloat16, 1);
  const Program program = lower_training(model);
  std::vector<std::string> poolings;
  for (const Operation& operation : program.operations()) {
    if (std::string(operation.kind) == "pooling") poolings.push_back(operation.name);
  }
  EXPECT_EQ(poolings.size(), 2U) << ::testing::PrintToString(poolings);
}

// One pass: as many bytes as the norm's values have. Three to normalise, one of them for the sums, and five backward;
// where a residual is added, one more forward, and two more backward for a gradient of two parts.
TEST(CudaNormPasses, OfAResnet50AreFewerThanTenToANorm) {
  constexpr int kSamples = 256;
  const Model model(resnet(50, {3, 224, 224}), DType::bfloat16, 1);
  const Program program = lower_training(model);
  double touched = 0, values = 0;
  for (const Operation& operation : program.operations()) {
    if (std::string(operation.kind) != "batch_norm") continue;
    touched += static_cast<double>(program.bytes_of(operation, kSamples));
    if (operation.name.ends_with(".statistics")) values += 2.0 * kSamples * static_cast<double>(operation.shape.size());
  }
  EXPECT_LT(touched / values, 9.4);
  EXPECT_GT(touched / values, 8);
}

// A GELU costs no pass forward, and one backward: what its slope makes of the gradient is kept. The one that is left
// follows no norm.
TEST(CudaNormPasses, AGeluIsComputedWithTheNormBeforeIt) {
  const Model model(nn::build_network({.name = "speednet", .image = {3, 32, 32}}), DType::bfloat16, 1);
  const Program program = lower_training(model);
  int activations = 0;
  for (const Operation& operation : program.operations()) {
    if (std::string(operation.kind) == "activation") ++activations;
  }
  EXPECT_LE(activations, 2);
  const auto forward = operations_of(program, ".forward"), sums = operations_of(program, ".gradient_sums");
  EXPECT_FALSE(sums.empty());
  for (const auto& [node, gradient] : operations_of(program, ".gradient")) {
    if (std::string(gradient->kind) != "batch_norm") continue;
    const TensorId kept = sums.at(node)->touches.at(4);
    EXPECT_NE(kept, kNoTensor) << node;
    EXPECT_TRUE(touches(*gradient, kept)) << node;
    EXPECT_FALSE(touches(*gradient, forward.at(node)->touches.at(2))) << node;
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
