#include "plans/plan_proof.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/replay_device.hpp"
#include "device.hpp"
#include "random_values.hpp"

namespace dtrain::backend::cuda {
namespace {

using Bytes = std::vector<std::byte>;

Convolution work_of(Direction direction, DType dtype, float* moments = nullptr) {
  return {.direction = direction,
          .shape = {2, 8, 5, 5, 16, 5, 5, 3, 3, 1, 1, 1, 1, 1},
          .dtype = dtype,
          .moments = direction == Direction::forward ? moments : nullptr};
}

// What a run on the layout's memory leaves there.
Bytes results_of(const Convolution& work) {
  const ProofLayout layout(work);
  const std::shared_ptr<Device> device = make_replay_device();
  const DeviceMemory memory(*device, layout.bytes()), sums(*device, 1 << 20);
  const Bytes pattern = layout.pattern();
  EXPECT_LE(layout.results_begin(), pattern.size());
  device->upload(memory.data(), pattern.data(), layout.results_begin());
  Convolution there = layout.at(memory.data());
  there.sums = reinterpret_cast<float*>(sums.data());
  device->record({{"conv", there}})->run();
  Bytes results(layout.results_bytes());
  device->download(results.data(), memory.data() + layout.results_begin(), results.size());
  return results;
}

// Memory begins as NaN: a tensor that lay elsewhere, or over another one, would show.
TEST(CudaPlanProof, HasRoomForAllThatWorkReadsAndLeaves) {
  float moments[1];
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const Direction direction : {Direction::forward, Direction::backward_data, Direction::backward_weights}) {
      const Convolution work = work_of(direction, dtype, moments);
      const Bytes results = results_of(work);
      with_type(dtype, [&]<typename T>(T) {
        T last{};
        const std::int64_t values = direction == Direction::forward         ? work.shape.outputs()
                                    : direction == Direction::backward_data ? work.shape.inputs()
                                                                            : work.shape.weights();
        for (std::int64_t at = 0; at < values; ++at) {
          std::memcpy(&last, results.data() + static_cast<std::size_t>(at) * sizeof(T), sizeof last);
          ASSERT_TRUE(std::abs(widen(last)) < 1e3f) << direction_name(direction) << at;
        }
      });
      EXPECT_EQ(results, results_of(work)) << "the same inputs each time";
    }
  }
}

TEST(CudaPlanProof, LeavesMomentsBehindTheResult) {
  float moments[1];
  const ProofLayout with(work_of(Direction::forward, DType::float16, moments)),
      without(work_of(Direction::forward, DType::float16));
  EXPECT_EQ(with.results_bytes(), without.results_bytes() + 256);
  std::byte memory[1];
  const Convolution there = with.at(memory);
  EXPECT_EQ(reinterpret_cast<std::byte*>(there.moments) - static_cast<std::byte*>(there.result),
            static_cast<std::ptrdiff_t>(without.results_bytes()));
  EXPECT_EQ(without.at(memory).moments, nullptr);
}

TEST(CudaPlanProof, HoldsOnlyWhereEveryRunLeavesTheSame) {
  int runs = 0;
  const auto leaves = [&](int differs_at) {
    runs = 0;
    return always_the_same([&, differs_at]() -> std::optional<Bytes> {
      return Bytes{std::byte{1}, std::byte{static_cast<unsigned char>(++runs == differs_at ? 2 : 3)}};
    });
  };
  EXPECT_TRUE(leaves(0));
  const int all = runs;
  EXPECT_GT(all, 2);
  for (int differs_at = 1; differs_at <= all; ++differs_at) EXPECT_FALSE(leaves(differs_at)) << differs_at;
  EXPECT_FALSE(always_the_same([]() -> std::optional<Bytes> { return std::nullopt; }));
}

TEST(CudaPlanProof, FillsInputsWithWhatNoTwoRowsShare) {
  for (const DType dtype : {DType::bfloat16, DType::float32}) {
    const ProofLayout layout(work_of(Direction::forward, dtype));
    with_type(dtype, [&]<typename T>(T) {
      const Bytes pattern = layout.pattern();
      const auto values = static_cast<std::int64_t>(pattern.size() / sizeof(T));
      for (std::int64_t row = 8; row <= 4096; row += 8) EXPECT_NE(values % row, 0) << row;
      std::int64_t above = 0;
      for (std::int64_t at = 0; at < values; ++at) {
        T value{};
        std::memcpy(&value, pattern.data() + static_cast<std::size_t>(at) * sizeof value, sizeof value);
        ASSERT_LE(std::abs(widen(value)), 1);
        above += widen(value) > 0;
      }
      EXPECT_NEAR(static_cast<double>(above) / static_cast<double>(values), 0.5, 0.01);
    });
  }
}

// Sums in float32 in two orders agree; a sum with one product less, or one in the wrong place, does not.
TEST(CudaPlanProof, ToleratesAnotherOrderAndNothingElse) {
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    for (const std::int64_t products : {64, 512, 2048}) {
      with_type(dtype, [&]<typename T>(T) {
        const auto factors = random_values<T>(2 * products, 7, -1, 1);
        const auto product = [&](std::int64_t k) {
          return widen(factors[static_cast<std::size_t>(k)]) * widen(factors[static_cast<std::size_t>(products + k)]);
        };
        float forward = 0, back = 0, misses_one = 0, crossed = 0;
        for (std::int64_t k = 0; k < products; ++k) {
          forward += product(k);
          back += product(products - 1 - k);
          misses_one += k == products / 2 ? 0 : product(k);
          crossed += widen(factors[static_cast<std::size_t>(k)]) *
                     widen(factors[static_cast<std::size_t>(products + (k ^ 1))]);
        }
        const auto agree = [&](float left, float right) {
          T one{}, other{};
          narrow(left, one);
          narrow(right, other);
          std::vector<float> excess(Compare<T>::kThreads);
          const Compare<T> compare{&one, &other, 1, proof_tolerance(dtype, products), excess.data()};
          for (std::int64_t i = 0; i < compare.threads(); ++i) compare(i);
          return std::ranges::all_of(excess, [](float over) { return over == 0; });
        };
        EXPECT_TRUE(agree(forward, back)) << dtype_name(dtype) << products;
        EXPECT_FALSE(agree(forward, crossed)) << dtype_name(dtype) << products;
        if (products == 64) {
          EXPECT_FALSE(agree(forward, misses_one)) << dtype_name(dtype);
        }
        EXPECT_FALSE(agree(forward, std::nanf("")));
        EXPECT_FALSE(agree(std::nanf(""), std::nanf("")));
        EXPECT_FALSE(agree(INFINITY, forward));
      });
    }
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
