// Batches of bytes, and batches that are on their way while another one is computed.
#include <gtest/gtest.h>

#include <dtrain/nn/networks.hpp>

#include "backend/host_views.hpp"
#include "common/byte_problem.hpp"
#include "common/replay_device.hpp"
#include "common/trace.hpp"

namespace dtrain::testing {
namespace {

using backend::cuda::make_replay_backend;

nn::Graph network() { return layer_problems().back().graph; }

std::unique_ptr<backend::Executable> compiled(const backend::Backend& backend, const Problem& problem,
                                              backend::DType dtype = backend::DType::float32) {
  auto executable = backend.compile(problem.graph, {.dtype = dtype, .max_samples = problem.n});
  executable->write_state(problem.state);
  return executable;
}

std::vector<float> contribution(backend::Executable& executable, const Problem& problem,
                                const backend::HostBatch& batch, int shards = 1) {
  const std::vector<backend::ShardRange> ranges = split_samples(problem.n, shards);
  CollectingSink sink(problem.graph, ranges);
  executable.enqueue(batch, ranges, problem.key, sink);
  executable.synchronize();
  return sink.sum();
}

TEST(CudaInput, BytesGiveTheBitsOfTheFloatsThatTheyStandFor) {
  const ByteProblem problem(network(), 7);
  const auto backend = make_replay_backend();
  for (const auto dtype : {backend::DType::float32, backend::DType::bfloat16}) {
    const auto executable = compiled(*backend, problem.floats, dtype);
    for (const int shards : {1, 4}) {
      EXPECT_EQ(contribution(*executable, problem.floats, problem.batch(), shards),
                contribution(*executable, problem.floats, problem.floats.batch(), shards))
          << shards;
    }
    std::vector<float> a(static_cast<std::size_t>(7 * problem.floats.graph.classes())), b(a.size());
    EXPECT_EQ(executable->evaluate(problem.batch(), a).loss_sum,
              executable->evaluate(problem.floats.batch(), b).loss_sum);
    EXPECT_EQ(a, b);
  }
}

// The device makes the views of bytes that it has; the host makes those of floats and has each computed by itself.
TEST(CudaInput, ViewsMadeOnTheDeviceCountWhatViewsMadeOnTheHostCount) {
  const ByteProblem problem(network(), 7);
  const nn::Graph& graph = problem.floats.graph;
  const auto backend = make_replay_backend();
  for (const auto dtype : {backend::DType::float32, backend::DType::bfloat16, backend::DType::float16}) {
    const auto executable = compiled(*backend, problem.floats, dtype);
    for (const int number : {1, 2, 6}) {
      const auto views = nn::image_views(number);
      std::vector<float> here(static_cast<std::size_t>(7 * graph.classes())), there(here.size());
      const backend::StepMetrics found = executable->evaluate(problem.batch(), views, here);
      const backend::StepMetrics wanted = backend::evaluate_views(
          graph, 5, problem.floats.batch(), views, there,
          [&](const auto& images, std::span<float> logits) { return executable->evaluate(images, logits); });
      EXPECT_EQ(here, there) << number;
      EXPECT_NEAR(found.loss_sum, wanted.loss_sum, 1e-5 * wanted.loss_sum) << number;
      EXPECT_EQ(found.correct, wanted.correct) << number;
      EXPECT_EQ(found.top_k_correct, wanted.top_k_correct) << number;
      EXPECT_EQ(found.count, 7) << number;
      // Floats that a caller brings are seen in the same views, and steps go on without one.
      EXPECT_EQ(executable->evaluate(problem.floats.batch(), views, here).loss_sum, found.loss_sum) << number;
      EXPECT_EQ(here, there) << number;
      EXPECT_EQ(contribution(*executable, problem.floats, problem.batch()),
                contribution(*compiled(*backend, problem.floats, dtype), problem.floats, problem.floats.batch()));
    }
  }
}

TEST(CudaInput, ABatchThatWasStagedIsTheBatchThatIsComputed) {
  const ByteProblem a(network(), 7, 1), b(network(), 7, 2), c(network(), 5, 3), d(network(), 7, 4);
  const auto backend = make_replay_backend();
  const auto executable = compiled(*backend, a.floats), plain = compiled(*backend, a.floats);
  const auto expect_right = [&](const ByteProblem& of, std::uint64_t staged) {
    EXPECT_EQ(contribution(*executable, of.floats, of.batch(staged)),
              contribution(*plain, of.floats, of.floats.batch()));
  };
  const std::uint64_t first = executable->stage(a.batch()), second = executable->stage(b.batch());
  EXPECT_NE(first, 0u);
  expect_right(a, first);
  const std::uint64_t third = executable->stage(c.batch());
  expect_right(b, second);
  expect_right(c, third);
  const std::uint64_t lost = executable->stage(d.batch());
  executable->stage(a.batch());
  expect_right(b, 0);  // takes the place of one that was staged
  expect_right(d, lost);
}

}  // namespace
}  // namespace dtrain::testing
