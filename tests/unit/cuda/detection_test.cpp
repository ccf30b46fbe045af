// Detectors on the cuda backend, replayed on this CPU, against the reference.
#include <gtest/gtest.h>

#include <limits>

#include "common/replay_device.hpp"
#include "common/thin_network.hpp"
#include "common/trace.hpp"

namespace dtrain::testing {
namespace {

using backend::DType;
using backend::cuda::make_replay_backend;

class CudaDetection : public ::testing::TestWithParam<Problem> {};

INSTANTIATE_TEST_SUITE_P(Layers, CudaDetection, ::testing::ValuesIn(detection_problems()),
                         [](const auto& of) { return of.param.name; });
INSTANTIATE_TEST_SUITE_P(Regions, CudaDetection, ::testing::ValuesIn(region_problems()),
                         [](const auto& of) { return of.param.name; });

std::string detection_difference(const Problem& problem, const TraceOptions& options, const Tolerance& tolerance = {}) {
  return compare_backends(*make_replay_backend(), *backend::make_reference_backend(), problem, options, tolerance);
}

TEST_P(CudaDetection, AgreesWithTheReference) { EXPECT_EQ(detection_difference(GetParam(), {}), ""); }

TEST_P(CudaDetection, AgreesWithTheReferenceInShardsOfUnequalSize) {
  EXPECT_EQ(detection_difference(GetParam(), {.shards = 3}, {.gradients = 2e-4}), "");
}

// Values in two bytes give other scores, which choose other regions, and put close ones in another order.
TEST_P(CudaDetection, ComesNearTheReferenceInTwoBytes) {
  if (std::holds_alternative<nn::RegionLoss>(GetParam().graph.nodes.back().layer)) {
    GTEST_SKIP() << "scores that are rounded choose other regions";
  }
  const bool detects = nn::detection_of(GetParam().graph) != nullptr;
  Tolerance tolerance{.loss = 0.02, .gradients = 0.3, .statistics = 0.02, .logits = 0.04, .parameters = 0.1};
  if (detects) tolerance.logits = std::numeric_limits<double>::infinity();
  EXPECT_EQ(detection_difference(GetParam(), {.dtype = DType::bfloat16}, tolerance), "");
  Problem problem = GetParam();
  problem.state.loss_scale.value = 16;  // the first one would overflow, and skip the step
  EXPECT_EQ(detection_difference(problem, {.dtype = DType::float16, .updates = 1}, tolerance), "");
}

// float16 has a loss scale, which every slope of the heads takes.
TEST(CudaDetectors, LearnFromFiniteGradientsInEveryType) {
  for (const Problem& problem : region_problems()) {
    for (const DType dtype : {DType::bfloat16, DType::float16}) {
      const Trace trace = trace_steps(*make_replay_backend(), problem, {.dtype = dtype});
      const Trace judge = trace_steps(*backend::make_reference_backend(), problem, {});
      const std::size_t loss = trace.contribution.size() - 5 - 4 + (problem.name == "boxes" ? 1 : 0);
      EXPECT_LT(relative_difference(std::span(trace.contribution).subspan(loss, 1),
                                    std::span(judge.contribution).subspan(loss, 1)),
                0.1)
          << problem.name;
      EXPECT_LT(relative_difference(trace.after.parameters, judge.after.parameters), 0.1) << problem.name;
    }
  }
}

nn::PictureObjects picture_of(std::vector<nn::Box> boxes, std::vector<std::int32_t> classes, int height, int width,
                              int side) {
  nn::PictureObjects picture;
  picture.height = height, picture.width = width;
  for (const nn::Box& box : boxes) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const auto across = static_cast<float>(x), down = static_cast<float>(y);
        picture.masks.push_back(across >= box.left && across < box.right && down >= box.top && down < box.bottom);
      }
    }
  }
  picture.crowd.assign(boxes.size(), 0);
  picture.areas.assign(boxes.size(), 100.0);
  picture.boxes = std::move(boxes);
  picture.classes = std::move(classes);
  return picture;
}

Problem detector(const std::string& name) {
  constexpr int kSide = 64, kThinner = 16;
  const int proposals = name == "retinanet" ? 0 : 24;
  Problem problem = make_problem(
      thin_detector(
          {.name = name, .image = {3, kSide, kSide}, .classes = 4, .backbone = "resnet-18", .proposals = proposals},
          kThinner),
      3);
  problem.name = name;
  problem.objects = {picture_of({{4, 6, 40, 44}, {20, 10, 63, 38}, {1, 40, 20, 62}}, {1, 0, 3}, 64, 60, kSide),
                     picture_of({}, {}, 64, 64, kSide), picture_of({{10, 3, 50, 58}}, {2}, 60, 64, kSide)};
  return problem;
}

TEST(CudaDetectors, MakeWholeTrainingStepsAsTheReferenceDoes) {
  for (const char* const name : {"retinanet", "faster-rcnn", "mask-rcnn"}) {
    EXPECT_EQ(detection_difference(detector(name), {.update = {{}, 1e-4f}}, {.gradients = 2e-4}), "") << name;
  }
}

// A step whose sum stays on the device tells each part of the loss.
TEST(CudaDetectors, TellThePartsOfALossThatStaysOnTheDevice) {
  const Problem problem = region_problems().back();
  const auto executable = make_replay_backend()->compile(problem.graph, {.max_samples = problem.n});
  executable->write_state(problem.state);
  executable->enqueue(problem.batch(), std::vector<backend::ShardRange>{{0, 0, problem.n}}, problem.key,
                      backend::OwnSum{});
  const backend::StepMetrics metrics = executable->set_sum(backend::OwnSum{});
  const Trace judge = trace_steps(*backend::make_reference_backend(), problem, {});
  const backend::StepMetrics expected =
      backend::metrics_of(backend::ContributionLayout(problem.graph), judge.contribution);
  EXPECT_EQ(metrics.count, problem.n);
  for (std::size_t part = 0; part < expected.parts.size(); ++part) {
    EXPECT_NEAR(metrics.parts[part], expected.parts[part], 1e-4 * expected.parts[part]) << part;
    EXPECT_GT(expected.parts[part], 0) << part;
  }
}

TEST(CudaDetectors, RefusePyramidsOfMoreLevelsThanKernelsHavePlacesFor) {
  nn::GraphBuilder b("deep", {3, 512, 512});
  std::vector<int> levels{b.add("first", nn::Convolution{.out = 2}, {b.input()})};
  for (int level = 1; level < 9; ++level) {
    levels.push_back(b.add("level" + std::to_string(level),
                           nn::Pooling{.kernel_h = 1, .kernel_w = 1, .stride_h = 2, .stride_w = 2}, {levels.back()}));
  }
  const nn::Graph graph = b.finish(b.add("logits", nn::Dense{.out = 2}, {b.add("pyramid", nn::Pyramid{}, levels)}));
  try {
    make_replay_backend()->compile(graph, {.max_samples = 1});
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("at most 8 levels, 'pyramid' has 9"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace dtrain::testing
