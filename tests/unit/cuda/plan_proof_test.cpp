#include "plans/plan_proof.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "common/replay_device.hpp"
#include "device.hpp"

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
  const Bytes inputs = layout.inputs();
  device->upload(memory.data(), inputs.data(), inputs.size());
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

}  // namespace
}  // namespace dtrain::backend::cuda
