#include <dtrain/train/gradient_compression.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <dtrain/base/error.hpp>
#include <dtrain/base/random.hpp>

namespace dtrain::train {
namespace {

constexpr int kGradients = 500;

std::vector<float> gradients_of(int shard, int step) {
  RandomStream random(5, RandomUse::drawing, static_cast<std::uint32_t>(shard), static_cast<std::uint32_t>(step));
  std::vector<float> values(kGradients + 3, 9.0f);  // and what follows them in a contribution
  for (int i = 0; i < kGradients; ++i) values[static_cast<std::size_t>(i)] = random.uniform(-1, 1);
  return values;
}

GradientCompressor compressor(const GradientCompression& options, comm::ShardSpan shards = {0, 1}) {
  return {options, kGradients, shards};
}

// MXNet's rule, a float at a time (src/kvstore/gradient_compression-inl.h): what is sent, in units of the threshold.
float sent_by_rule(float gradient, float threshold, float& residual) {
  residual += gradient;
  if (residual >= threshold) {
    residual -= threshold;
    return 1;
  }
  if (residual <= -threshold) {
    residual += threshold;
    return -1;
  }
  return 0;
}

TEST(GradientCompression, QuantisesToTwoBitsByMXNetsRule) {
  for (const float threshold : {0.5f, 0.1f, 2.0f, 1.0f / 3}) {
    GradientCompressor compressed = compressor({.kind = Compression::two_bit, .threshold = threshold});
    std::vector<float> residual(kGradients);
    for (int step = 0; step < 20; ++step) {
      std::vector<float> leaf = gradients_of(0, step), expected = leaf;
      if (step == 7) leaf[0] = expected[0] = threshold - residual[0];  // the border itself
      for (std::size_t i = 0; i < kGradients; ++i) expected[i] = sent_by_rule(leaf[i], threshold, residual[i]);
      compressed.begin_step(false);
      for (int first = 400; first >= 0; first -= 100) {
        const FloatRange ready = compressed.take(0, leaf, {first, 100});
        EXPECT_EQ(ready.first, first);
        EXPECT_EQ(ready.size, 100) << "each part goes as soon as it is there";
      }
      ASSERT_EQ(leaf, expected) << "step " << step << ", threshold " << threshold;
      ASSERT_TRUE(std::ranges::equal(compressed.residual(0), residual));
    }
  }
}

TEST(GradientCompression, TheSumIsInUnitsOfTheThreshold) {
  GradientCompressor compressed = compressor({.kind = Compression::two_bit, .threshold = 0.25f});
  std::vector<float> sum(kGradients + 3, 3.0f);
  compressed.begin_step(false);
  compressed.restore(sum);
  EXPECT_EQ(sum[0], 0.75f);
  EXPECT_EQ(sum[kGradients - 1], 0.75f);
  EXPECT_EQ(sum[kGradients], 3.0f) << "what follows the gradients is none of them";
  compressed.begin_step(true);
  compressed.restore(sum);
  EXPECT_EQ(sum[0], 0.75f);
}

// Sorted by size and then by index, as the definition says.
std::vector<float> largest(const std::vector<float>& values, std::size_t count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return std::fabs(values[a]) > std::fabs(values[b]); });
  std::vector<float> result(values.size());
  for (const std::size_t i : std::span(order).first(count)) result[i] = values[i];
  return result;
}

TEST(GradientCompression, SendsTheLargestAndOfEqualsTheFirst) {
  for (const double share : {0.01, 0.1, 1.0, 1e-9}) {
    GradientCompressor compressed = compressor({.kind = Compression::top_k, .share = share});
    const auto count = static_cast<std::size_t>(std::max(1.0, share * kGradients));
    std::vector<float> residual(kGradients);
    for (int step = 0; step < 20; ++step) {
      std::vector<float> leaf = gradients_of(0, step);
      // Half of the steps have a few values only, so that most are equal.
      if (step % 2 == 0) std::ranges::transform(leaf, leaf.begin(), [](float v) { return std::round(v * 2); });
      leaf[kGradients] = 9.0f;
      for (std::size_t i = 0; i < kGradients; ++i) residual[i] += leaf[i];
      const std::vector<float> expected = largest(residual, count);
      for (std::size_t i = 0; i < kGradients; ++i) residual[i] -= expected[i];
      compressed.begin_step(false);
      EXPECT_EQ(compressed.take(0, leaf, {300, 200}).size, 0);
      EXPECT_EQ(compressed.take(0, leaf, {0, 100}).size, 0) << "nothing is chosen before all is there";
      const FloatRange ready = compressed.take(0, leaf, {100, 200});
      EXPECT_EQ(ready.first, 0);
      EXPECT_EQ(ready.size, kGradients);
      ASSERT_TRUE(std::ranges::equal(std::span(leaf).first(kGradients), expected)) << "step " << step;
      ASSERT_TRUE(std::ranges::equal(compressed.residual(0), residual)) << "step " << step;
      EXPECT_EQ(leaf[kGradients], 9.0f);
    }
  }
}

TEST(GradientCompression, AWholeStepSendsAllThatWasHeldBack) {
  for (const Compression kind : {Compression::two_bit, Compression::top_k}) {
    GradientCompressor compressed = compressor({.kind = kind}, {2, 4});
    std::vector<float> last;
    for (const int shard : {3, 2}) {
      for (int step = 0; step < 3; ++step) {
        std::vector<float> leaf = gradients_of(shard, step);
        compressed.begin_step(step == 2);
        const std::vector<float> before(compressed.residual(shard).begin(), compressed.residual(shard).end());
        EXPECT_EQ(compressed.take(shard, leaf, {0, kGradients}).size, kGradients);
        if (step < 2) continue;
        std::vector<float> expected = gradients_of(shard, step);
        for (std::size_t i = 0; i < kGradients; ++i) expected[i] += before[i];
        EXPECT_EQ(leaf, expected);
        EXPECT_EQ(std::ranges::count(compressed.residual(shard), 0.0f), kGradients);
        EXPECT_EQ(compressed.shape({.shards = 4, .size = kGradients + 3}).packed, 0);
        EXPECT_NE(leaf, last) << "each shard has its own";
        last = leaf;
      }
    }
  }
}

TEST(GradientCompression, HasTextsThatComeBack) {
  for (const char* text : {"none", "2bit:0.5", "2bit:0.3", "topk:0.01", "topk:1"}) {
    EXPECT_EQ(compression_text(compression_from(text)), text);
  }
  EXPECT_EQ(compression_from("2bit", {.threshold = 0.125f}).threshold, 0.125f);
  for (const char* text : {"", "4bit", "2bit:", "2bit:0", "2bit:-1", "2bit:nan", "2bit:inf", "2bit:1e300", "2bit:1e-60",
                           "topk", "topk:", "topk:0", "topk:1.01", "topk:-0.1", "topk:nan", "powersgd:2"}) {
    EXPECT_THROW(compression_from(text), UsageError) << text;
  }
}

TEST(GradientCompression, SendsAtLeastOneFloat) {
  EXPECT_EQ(floats_sent(0.01, 1000), 10);
  EXPECT_EQ(floats_sent(0.01, 50), 1);
  EXPECT_EQ(floats_sent(1, 50), 50);
}

}  // namespace
}  // namespace dtrain::train
