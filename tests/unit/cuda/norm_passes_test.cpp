// How often a batch norm goes through memory: what its operations touch and read again on a chip, without a device.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <dtrain/nn/freeze.hpp>
#include <dtrain/nn/networks.hpp>

#include "gpu/native/slab_choice.hpp"
#include "lowering.hpp"
#include "training_calls.hpp"

namespace dtrain::backend::cuda {
namespace {

nn::Graph resnet(int layers, nn::Shape image) {
  return nn::build_network({.name = "resnet-v1", .num_layers = layers, .image = image});
}

// Operations whose names end so, by the names of their nodes.
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
  const auto forward = operations_of(program, ".forward");
  constexpr int kStages = 4;
  int without = 0;
  for (const nn::Node& node : model.graph.nodes) {
    if (std::holds_alternative<nn::BatchNorm>(node.layer)) without += forward.contains(node.name) ? 0 : 1;
  }
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

// Bytes that the norms of a step move on a chip, over those that their values have.
double passes_of(const Model& model, int samples, const ChipFacts& chip) {
  Program program = lower_training(model);
  program.plan(samples);
  auto* const somewhere = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20);
  auto* const floats = reinterpret_cast<float*>(somewhere);
  Binding binding{.n = samples, .arena = somewhere, .offsets = &program.offsets()};
  binding.parameters = binding.contribution = binding.coefficients = floats;
  double moved = 0, values = 0;
  for (const Operation& operation : program.operations()) {
    if (std::string(operation.kind) != "batch_norm") continue;
    std::vector<Call> calls;
    operation.bind(binding, calls);
    moved += static_cast<double>(program.bytes_of(operation, samples));
    for (const Call& call : calls) {
      moved += static_cast<double>(call.work.visit([&](const auto& work) { return read_again(work, chip); }));
    }
  }
  for (const nn::Node& node : model.graph.nodes) {
    if (!std::holds_alternative<nn::BatchNorm>(node.layer)) continue;
    values += static_cast<double>(model.value_bytes()) * samples * static_cast<double>(node.output.size());
  }
  return moved / values;
}

// By definition three passes to normalise, one of them for the sums, and five backward; where a residual is added, one
// more forward, and two more backward for a gradient of two parts. What stays on the chip is not read again.
TEST(CudaNormPasses, OfAResnet50AreFewerOnTheChipThanByDefinition) {
  const Model model(resnet(50, {3, 224, 224}), DType::bfloat16, 1);
  constexpr int kSamples = 256;
  EXPECT_LT(passes_of(model, kSamples, {}), 9.4);
  EXPECT_GT(passes_of(model, kSamples, {}), 9);
  EXPECT_LT(passes_of(model, kSamples, kH100), 7.2);
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
  const auto forward = operations_of(program, ".forward");
  int norms = 0;
  for (const auto& [node, gradient] : operations_of(program, ".gradient")) {
    if (std::string(gradient->kind) != "batch_norm") continue;
    ++norms;
    const TensorId kept = gradient->touches.at(4);
    EXPECT_NE(kept, kNoTensor) << node;
    EXPECT_FALSE(touches(*gradient, forward.at(node)->touches.at(2))) << node;
  }
  EXPECT_GT(norms, 0);
}

// Their coefficients are no function of what they read: there is nothing to wait for on the chip.
TEST(CudaNormPasses, NormsThatDoNotLearnAreNoOperationWithSums) {
  nn::Graph graph = resnet(20, {3, 32, 32});
  std::string norms;
  for (const nn::Node& node : graph.nodes) {
    if (std::holds_alternative<nn::BatchNorm>(node.layer)) norms += (norms.empty() ? "" : ",") + node.name;
  }
  const auto slabs = [](const nn::Graph& of) {
    int number = 0;
    for (const Call& call : training_calls(of, DType::bfloat16, 2)) {
      number += call.work.visit([]<typename W>(const W&) { return GoesBySlabs<W> ? 1 : 0; });
    }
    return number;
  };
  EXPECT_GT(slabs(graph), 0);
  nn::freeze(graph, norms);
  EXPECT_EQ(slabs(graph), 0);
}

}  // namespace
}  // namespace dtrain::backend::cuda
