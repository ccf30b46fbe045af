// A large dense layer and its gradients, beside the reference.
#include "products/dense_gradient.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>

#include "common/layer_cases.hpp"
#include "common/trace.hpp"
#include "products/dense_product.hpp"

namespace dtrain::backend::cpu {
namespace {

// A picture and a vector before a large layer, whose rows fill the last block and do not. 300 samples pass in two
// chunks.
struct DenseCase {
  int pixels, channels, rows, samples;
};

class DenseGradients : public ::testing::TestWithParam<DenseCase> {};

INSTANTIATE_TEST_SUITE_P(Shapes, DenseGradients,
                         ::testing::Values(DenseCase{8, 64, 257, 5}, DenseCase{1, 4096, 264, 5},
                                           DenseCase{16, 256, 16, 20}));

testing::Problem network(const DenseCase& c) {
  nn::GraphBuilder b("dense", {3, c.pixels, c.pixels});
  int x = b.add("convolution", nn::Convolution{.out = c.channels, .bias = true}, {b.input()});
  x = b.add("large", nn::Dense{.out = c.rows}, {x});
  return testing::make_problem(b.finish(b.add("logits", nn::Dense{.out = 7}, {x})), c.samples);
}

TEST_P(DenseGradients, AgreeWithTheReference) {
  for (const int threads : {1, 2}) {
    testing::TraceOptions options;
    options.threads_per_lane = threads;
    EXPECT_EQ(compare_backends(*make_cpu_backend(), *make_reference_backend(), network(GetParam()), options), "");
  }
}

// The numbers between the layers are rounded, so the comparison is as coarse as theirs.
TEST_P(DenseGradients, ComeNearTheReferenceInBfloat16) {
  if (make_cpu_backend()->why_not(DType::bfloat16)) GTEST_SKIP() << "this CPU lacks bfloat16";
  testing::TraceOptions options;
  options.dtype = DType::bfloat16;
  const testing::Tolerance rounded{
      .loss = 0.02, .gradients = 0.05, .statistics = 0.05, .logits = 0.05, .parameters = 0.05};
  EXPECT_EQ(compare_backends(*make_cpu_backend(), *make_reference_backend(), network(GetParam()), options, rounded),
            "");
}

// Keeps what is deferred, and declares it ready among the contributions that it keeps.
class KeepingSink final : public DeferringSink {
 public:
  KeepingSink(const nn::Graph& graph, std::span<const ShardRange> shards)
      : kept(graph, shards), deferred(shards.size()) {}
  std::span<float> buffer(const ShardRange& shard) override { return kept.buffer(shard); }
  void ready(const ShardRange& shard, std::int64_t first, std::int64_t size, bool last) override {
    kept.ready(shard, first, size, last);
  }
  void defer(const ShardRange& shard, FloatRange range, std::shared_ptr<const DeferredFloats> floats) override {
    {
      const std::lock_guard lock(mutex_);
      part = range;
    }
    deferred[static_cast<std::size_t>(shard.index)] = std::move(floats);
    kept.ready(shard, range.first, range.size, false);
  }
  void compute_deferred() override { ++asked; }

  testing::CollectingSink kept;
  FloatRange part;
  std::vector<std::shared_ptr<const DeferredFloats>> deferred;  // [shard]
  std::atomic<int> asked{0};

 private:
  std::mutex mutex_;  // of the part, which all shards name
};

std::vector<float> sum_of_tree(const testing::CollectingSink& sink, int first, int last) {
  if (last - first == 1) return sink.of(first);
  std::vector<float> sum = sum_of_tree(sink, first, (first + last) / 2);
  std::ranges::transform(sum, sum_of_tree(sink, (first + last) / 2, last), sum.begin(), std::plus());
  return sum;
}

// Ranges as buckets cut them: within a row, over the borders of rows, from the first float to the last.
TEST_P(DenseGradients, HaveTheSameBitsWhereSumsOverShardsAreComputedLater) {
  constexpr int kShards = 4;
  const testing::Problem problem = network(GetParam());
  const std::vector<ShardRange> shards = testing::split_samples(problem.batch().n, kShards);
  for (const int threads : {1, 3}) {
    const auto executable = make_cpu_backend()->compile(
        problem.graph, {.lanes = 2, .threads_per_lane = threads, .max_samples = problem.batch().n});
    executable->write_state(problem.state);
    testing::CollectingSink at_once(problem.graph, shards);
    KeepingSink later(problem.graph, shards);
    executable->enqueue(problem.batch(), shards, problem.key, at_once);
    executable->synchronize();
    executable->enqueue(problem.batch(), shards, problem.key, later);
    executable->synchronize();

    EXPECT_GT(later.asked, 0);
    const std::vector<float> expected = sum_of_tree(at_once, 0, kShards);
    std::vector<float> sum = sum_of_tree(later.kept, 0, kShards);
    std::vector<const DeferredFloats*> leaves;
    for (const auto& leaf : later.deferred) leaves.push_back(leaf.get());
    const std::int64_t cuts[] = {0, 17, 500, 5'000, 40'001, 262'144, later.part.size};
    for (std::size_t cut = 0; cut + 1 < std::size(cuts); ++cut) {
      const auto range = std::span(sum).subspan(static_cast<std::size_t>(later.part.first + cuts[cut]),
                                                static_cast<std::size_t>(cuts[cut + 1] - cuts[cut]));
      leaves.front()->add_up(leaves, later.part.first + cuts[cut], range);
    }
    EXPECT_EQ(sum, expected) << threads;
  }
}

Product large_product() {
  Product p;
  p.dense = true;
  p.in = {512, 7, 7};
  p.out = {4096, 1, 1};
  return p;
}

TEST(DenseGradientLayers, AreTheLargeOnes) {
  const CpuModel cpu{.has_avx512 = true};
  Product p = large_product();
  EXPECT_TRUE(has_dense_gradient(p, cpu));
  EXPECT_FALSE(has_dense_gradient(p, {})) << "a chip without fused multiply-adds";
  p.dtype = DType::bfloat16;
  EXPECT_TRUE(has_dense_gradient(p, cpu));
  p.in = {511, 7, 7};
  EXPECT_FALSE(has_dense_gradient(p, cpu)) << "inputs that fill no panel";
  p.in = {512, 1, 1};
  p.out.c = 1000;
  EXPECT_FALSE(has_dense_gradient(p, cpu)) << "half a million weights";
  p.out.c = 4096;
  p.dense = false;
  EXPECT_FALSE(has_dense_gradient(p, cpu)) << "a convolution";
}

TEST(DenseGradientLayers, AreMultipliedByPlainWeightsInFloat32) {
  const CpuModel cpu{.has_avx512 = true};
  Product p = large_product();
  EXPECT_TRUE(has_dense_product(p, cpu));
  p.dtype = DType::bfloat16;
  EXPECT_FALSE(has_dense_product(p, cpu)) << "a CPU that multiplies bfloat16 numbers";
  p.widened = true;
  EXPECT_TRUE(has_dense_product(p, cpu)) << "one that multiplies float32 copies of them";
}

}  // namespace
}  // namespace dtrain::backend::cpu
