#include <dtrain/train/gradient_compression.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
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

const std::vector<nn::TensorView> kParameters = {
    {.name = "w", .shape = {20, 24}, .offset = 0, .size = 480},
    {.name = "b", .shape = {20}, .role = nn::TensorRole::bias, .offset = 480, .size = 20}};

GradientCompressor compressor(const GradientCompression& options, comm::ShardSpan shards = {0, 1}, int all = 1) {
  return {options, kParameters, all, shards};
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

std::vector<GradientCompression> each_kind() {
  return {{.kind = Compression::two_bit}, {.kind = Compression::top_k}, {.kind = Compression::power_sgd}};
}

TEST(GradientCompression, AWholeStepHasAllThatTheShardsKept) {
  for (const GradientCompression& options : each_kind()) {
    if (options.kind == Compression::power_sgd) continue;  // its other steps are not take()
    GradientCompressor compressed = compressor(options, {2, 4}, 4);
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
        EXPECT_EQ(compressed.shape({.shards = 4, .size = kGradients + 3}).packed, 0);
        EXPECT_NE(leaf, last) << "each shard has its own";
        last = leaf;
      }
    }
  }
}

// No large step at the end of a window: the sum is compressed as a shard's gradients are.
TEST(GradientCompression, AWholeStepAppliesWhatWouldHaveBeenSentAndKeepsTheRest) {
  for (const GradientCompression& options : each_kind()) {
    SCOPED_TRACE(compression_text(options));
    GradientCompressor compressed = compressor(options, {2, 4}, 4);
    compressed.begin_step(true);
    std::vector<float> sum = gradients_of(0, 0);
    for (float& value : sum) value *= 5;
    const std::vector<float> whole = sum;
    compressed.restore(sum);
    EXPECT_EQ(sum.back(), whole.back()) << "what follows the gradients is none of them";
    const std::vector<float> rest = compressed.take_rest();
    ASSERT_EQ(rest.size(), std::size_t{kGradients});
    double of_rest = 0, of_whole = 0;
    for (std::size_t i = 0; i < kGradients; ++i) {
      ASSERT_NEAR(sum[i] + rest[i], whole[i], 1e-5f);
      of_rest += std::fabs(rest[i]);
      of_whole += std::fabs(whole[i]);
      if (options.kind == Compression::two_bit) {
        ASSERT_TRUE(sum[i] == 0 || std::fabs(sum[i]) == 4 * 0.5f) << sum[i];
      }
    }
    EXPECT_LT(of_rest, of_whole);
    EXPECT_GT(of_rest, 0);
    if (options.kind == Compression::top_k) {
      EXPECT_EQ(std::ranges::count(sum, 0.0f), kGradients - 5);
    }

    compressed.open(rest);
    for (const int shard : {2, 3}) {
      for (std::size_t i = 0; i < kGradients; ++i) ASSERT_EQ(compressed.residual(shard)[i], rest[i] / 4);
    }
  }
}

// It is sent as 0 or as any large number is.
TEST(GradientCompression, AGradientThatIsNotFiniteShowsInTheRestOfItsWindow) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity}) {
    for (const int bad_step : {-1, 0, 1}) {
      SCOPED_TRACE(testing::Message() << bad << " in step " << bad_step);
      GradientCompressor compressed = compressor({.kind = Compression::two_bit});
      for (int step = 0; step < 2; ++step) {
        std::vector<float> leaf = gradients_of(0, step);
        if (step == bad_step) leaf[7] = bad;
        compressed.begin_step(step == 1);
        compressed.take(0, leaf, {0, kGradients});
        compressed.restore(leaf);
        EXPECT_TRUE(std::isfinite(leaf[7])) << "nothing shows in what is applied";
      }
      EXPECT_EQ(compressed.is_rest_finite(), bad_step < 0);
    }
  }
}

// Among the largest, in the order of bits: whatever is not a number comes first, and what is applied shows it.
TEST(GradientCompression, TheLargestBeginWithGradientsThatAreNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const bool whole : {false, true}) {
    SCOPED_TRACE(whole);
    GradientCompressor compressed = compressor({.kind = Compression::top_k, .share = 0.01});  // 5 floats
    std::vector<float> leaf = gradients_of(0, 0);
    leaf[7] = kNan;
    leaf[400] = -kNan;
    leaf[90] = kInfinity;
    leaf[300] = -kInfinity;
    leaf[20] = 5;
    leaf[21] = 4;
    compressed.begin_step(whole);
    compressed.take(0, leaf, {0, kGradients});
    compressed.restore(leaf);
    EXPECT_TRUE(std::isnan(leaf[7]) && std::isnan(leaf[400]));
    EXPECT_EQ(leaf[90], kInfinity);
    EXPECT_EQ(leaf[300], -kInfinity);
    EXPECT_EQ(leaf[20], 5);
    EXPECT_EQ(std::ranges::count(std::span(leaf).first(kGradients), 0.0f), kGradients - 5);
    const std::vector<float> kept =
        whole ? compressed.take_rest()
              : std::vector<float>(compressed.residual(0).begin(), compressed.residual(0).end());
    EXPECT_EQ(kept[21], 4);
    EXPECT_TRUE(std::ranges::all_of(kept, [](float value) { return std::isfinite(value); }));
  }
}

// More of them than are sent: the others show in the rest.
TEST(GradientCompression, GradientsThatAreNotFiniteAndNotSentShowInTheRest) {
  GradientCompressor compressed = compressor({.kind = Compression::top_k, .share = 0.01});
  std::vector<float> leaf = gradients_of(0, 0);
  std::fill_n(leaf.begin(), 6, std::numeric_limits<float>::quiet_NaN());
  compressed.begin_step(true);
  compressed.take(0, leaf, {0, kGradients});
  compressed.restore(leaf);
  EXPECT_TRUE(std::isnan(leaf[4]));
  EXPECT_FALSE(compressed.is_rest_finite());
}

// Two ranks with two shards each make the step that one rank with four makes.
TEST(GradientCompression, FactorsOfTheSumAreThoseOfAllShards) {
  constexpr std::int64_t kSize = kGradients + 3;
  const comm::ReductionShape plain{.shards = 4, .size = kSize};
  GradientCompressor alone = compressor({.kind = Compression::power_sgd}, {0, 4}, 4);
  alone.open(std::vector<float>(kGradients));
  std::vector<float> held(kGradients);  // by one shard that has all gradients to itself
  GradientCompressor one = compressor({.kind = Compression::power_sgd}, {0, 1}, 1);
  one.open(held);
  for (int step = 0; step < 4; ++step) {
    std::vector<float> sums[2];
    for (GradientCompressor* compressed : {&alone, &one}) {
      compressed->begin_step(false);
      ASSERT_TRUE(compressed->has_factors());
      const auto add = [](std::vector<float>& to, const std::vector<float>& leaf) {
        std::ranges::transform(to, leaf, to.begin(), std::plus<>());
      };
      std::vector<float> left(static_cast<std::size_t>(compressed->left_shape(plain).size));
      std::vector<float> right(static_cast<std::size_t>(compressed->right_shape(plain).size)), leaf;
      for (int shard = 0; shard < compressed->shards().size(); ++shard) {
        const std::span<float> contribution = compressed->contribution(shard, kSize);
        std::ranges::copy(gradients_of(shard, step), contribution.begin());
        for (int other = 1; other < 4 && compressed == &one; ++other) {
          std::ranges::transform(contribution, gradients_of(other, step), contribution.begin(), std::plus<>());
        }
        EXPECT_FALSE(compressed->collect(shard, {400, 103}));
        EXPECT_TRUE(compressed->collect(shard, {0, 400}));
        leaf.resize(left.size());
        compressed->left_factors(shard, leaf);
        add(left, leaf);
      }
      compressed->set_left_sum(left);
      for (int shard = 0; shard < compressed->shards().size(); ++shard) {
        leaf.resize(right.size());
        compressed->right_factors(shard, leaf);
        add(right, leaf);
      }
      std::vector<float>& sum = sums[compressed == &one];
      sum.resize(kSize);
      compressed->expand(left, right, sum);
    }
    for (std::size_t i = 0; i < kSize; ++i) ASSERT_NEAR(sums[0][i], sums[1][i], 2e-4) << "step " << step << " at " << i;
    EXPECT_EQ(sums[0].back(), 36) << "what follows the gradients is added as it is";
    for (std::size_t i = 0; i < kGradients; ++i) {
      float kept = 0;
      for (int shard = 0; shard < 4; ++shard) kept += alone.residual(shard)[i];
      ASSERT_NEAR(kept, one.residual(0)[i], 2e-4) << "nothing is lost";
    }
  }
}

TEST(GradientCompression, HasTextsThatComeBack) {
  for (const char* text : {"none", "2bit:0.5", "2bit:0.3", "topk:0.01", "topk:1", "powersgd:2", "powersgd:64"}) {
    EXPECT_EQ(compression_text(compression_from(text)), text);
  }
  EXPECT_EQ(compression_from("2bit", {.threshold = 0.125f}).threshold, 0.125f);
  EXPECT_EQ(compression_from("powersgd", {.rank = 5}).rank, 5);
  for (const char* text : {"", "4bit", "2bit:", "2bit:0", "2bit:-1", "2bit:nan", "2bit:inf", "2bit:1e300", "2bit:1e-60",
                           "topk", "topk:", "topk:0", "topk:1.01", "topk:-0.1", "topk:nan", "powersgd:", "powersgd:0",
                           "powersgd:1.5", "powersgd:2000"}) {
    EXPECT_THROW(compression_from(text), UsageError) << text;
  }
}

TEST(GradientCompression, SaysWhatALeafTravelsIn) {
  const auto bytes = [](const GradientCompression& options) { return bytes_of_leaf(options, kParameters); };
  EXPECT_EQ(bytes({}), 2000);
  EXPECT_EQ(bytes({.kind = Compression::two_bit}), (125 * 31 + 2000) / 32);
  EXPECT_EQ(bytes({.kind = Compression::power_sgd, .rank = 1}), ((20 + 24 + 20) * 4 * 31 + 2000) / 32);
  EXPECT_LT(bytes({.kind = Compression::top_k}), 300);
}

TEST(GradientCompression, SendsAtLeastOneFloat) {
  EXPECT_EQ(floats_sent(0.01, 1000), 10);
  EXPECT_EQ(floats_sent(0.01, 50), 1);
  EXPECT_EQ(floats_sent(1, 50), 50);
}

}  // namespace
}  // namespace dtrain::train
