// What dtrain exports, read without the documents that say which layers it had: as the model of another program.
#include <gtest/gtest.h>

#include <cmath>

#include <dtrain/train/export.hpp>

#include "common/problem.hpp"
#include "data/temporary_folder.hpp"
#include "weights/onnx_network.hpp"

namespace dtrain::train {
namespace {

using testing::Problem;

std::vector<float> logits_of(const nn::Graph& graph, const backend::ModelState& state, const Problem& problem) {
  const auto executable =
      backend::make_reference_backend()->compile(graph, {.max_samples = problem.n, .top_k = 1, .training = false});
  executable->write_state(state);
  std::vector<float> logits(static_cast<std::size_t>(problem.n * graph.classes()));
  executable->evaluate(problem.batch(), logits);
  return logits;
}

std::string exported(const Problem& problem, const OnnxOptions& options = {}) {
  const TemporaryFolder folder;
  Checkpoint checkpoint;
  checkpoint.graph = problem.graph;
  checkpoint.state = problem.state;
  export_onnx(checkpoint, folder / "x.onnx", options);
  return read_file(folder / "x.onnx");
}

backend::ModelState state_of(const OnnxNetwork& network) {
  backend::ModelState state;
  state.parameters.resize(static_cast<std::size_t>(network.graph.parameter_count));
  state.statistics.resize(static_cast<std::size_t>(network.graph.statistic_count));
  const auto copy = [&](const nn::TensorView& view, std::vector<float>& buffer) {
    const auto found = std::ranges::find(network.tensors, view.name, &ForeignTensor::name);
    ASSERT_NE(found, network.tensors.end()) << view.name;
    copy_values(*found,
                std::span(buffer).subspan(static_cast<std::size_t>(view.offset), static_cast<std::size_t>(view.size)));
  };
  for (const nn::TensorView& view : network.graph.parameters) copy(view, state.parameters);
  for (const nn::TensorView& view : network.graph.statistics) copy(view, state.statistics);
  return state;
}

class OnnxRoundTrip : public ::testing::TestWithParam<Problem> {};

INSTANTIATE_TEST_SUITE_P(All, OnnxRoundTrip, ::testing::ValuesIn(testing::layer_problems()),
                         [](const auto& of) { return of.param.name; });
INSTANTIATE_TEST_SUITE_P(Host, OnnxRoundTrip, ::testing::ValuesIn(testing::host_problems()),
                         [](const auto& of) { return of.param.name; });

void expect_same_logits(const OnnxNetwork& network, const Problem& problem) {
  const std::vector<float> expected = logits_of(problem.graph, problem.state, problem);
  const std::vector<float> found = logits_of(network.graph, state_of(network), problem);
  ASSERT_EQ(found.size(), expected.size());
  float largest = 0;
  for (const float each : expected) largest = std::max(largest, std::fabs(each));
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5f * largest);
}

TEST_P(OnnxRoundTrip, ComputesTheSame) {
  const std::string file = exported(GetParam());
  expect_same_logits(network_of_onnx(parse_onnx_file(bytes_of(file), "x.onnx"), "x.onnx"), GetParam());
}

TEST(OnnxProbabilities, AreThoseOfTheLossThatTheyCameFrom) {
  for (const nn::LossKind kind : {nn::LossKind::softmax, nn::LossKind::sigmoid}) {
    Problem problem = testing::layer_problems().front();
    nn::set_loss(problem.graph, {.kind = kind});
    const std::string file = exported(problem, {.softmax = true});
    const OnnxNetwork network = network_of_onnx(parse_onnx_file(bytes_of(file), "x.onnx"), "x.onnx");
    EXPECT_EQ(nn::loss_of(network.graph).kind, kind);
    expect_same_logits(network, problem);
  }
}

}  // namespace
}  // namespace dtrain::train
