// Native kernels on a first contact: one that does not start, or leaves other bits than its definition, is replaced by
// that and named; no result shows it.
#include <gtest/gtest.h>

#include <cmath>

#include "gpu/gpu_device.hpp"
#include "gpu/kernels.hpp"
#include "helpers/cuda_runtime/natives.hpp"
#include "orders.hpp"

namespace dtrain::backend::cuda {
namespace {

namespace runtime = testing::cuda_runtime;

constexpr std::int64_t kRows = 70;
constexpr std::int32_t kChannels = 8;
using Norm = NormForward<float>;

cudaError_t launch_all(const Call& call, cudaStream_t stream) {
  const std::vector<Call> parts = definition_of(call);
  for (const Call& part : parts) {
    if (const cudaError_t error = launch_all(part, stream); error != cudaSuccess) return error;
  }
  return parts.empty() ? launch(call.work, stream) : cudaSuccess;
}

class GpuNatives : public testing::InEveryOrder {
 protected:
  ~GpuNatives() override { runtime::play_natives({}); }

  float* floats(std::int64_t count) {
    memory_.push_back(std::make_unique<DeviceMemory>(*device_, static_cast<std::uint64_t>(count) * sizeof(float)));
    return reinterpret_cast<float*>(memory_.back()->data());
  }
  float* filled(std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>(k * 37 % 101) - 50;
    float* const to = floats(count);
    device_->upload(to, values.data(), values.size() * sizeof(float));
    return to;
  }
  Norm norm(float* y) {
    const RowParts cut = cut_rows(kRows, kChannels / Pack<float>::size);
    float* const x = filled(kRows * kChannels);
    float* const parts = floats(cut.parts * 2 * kChannels);
    float* const folds = floats(cut.folded_parts * 2 * kChannels);
    float* const gamma = filled(2 * kChannels);
    float* const mean = floats(2 * kChannels);
    const NormCoefficients coefficients{floats(NormCoefficients::rows * std::int64_t{kChannels}), kChannels};
    return {{{x, parts, cut, kChannels},
             {parts, folds, cut, 2 * kChannels},
             {folds, x, cut, {gamma, gamma + kChannels, 1e-5f}, coefficients, mean, mean + kChannels, 1.0f},
             nullptr},
            {x, nullptr, {}, y, nullptr, coefficients, few_rows(kRows), true}};
  }
  // What each of several runs leaves, the first ones and those of the graph; in between it is overwritten.
  std::vector<std::vector<float>> results() {
    float* const y = floats(kRows * kChannels);
    recording_ = device_->record({{"bn.forward", norm(y)}});
    std::vector<std::vector<float>> all;
    for (int run = 0; run < 4; ++run) {
      std::vector<float> values(kRows * kChannels, -1.0f);
      device_->upload(y, values.data(), values.size() * sizeof(float));
      recording_->run();
      device_->download(values.data(), y, values.size() * sizeof(float));
      all.push_back(values);
    }
    return all;
  }
  std::vector<std::vector<float>> by_definition() {
    runtime::play_natives({});
    return results();
  }
  // Plays natives of whole norms, and of no other work.
  void play(std::function<cudaError_t(const Call&, cudaStream_t)> launch) {
    runtime::play_natives([=, this](const Work& work, cudaStream_t stream) -> std::optional<cudaError_t> {
      if (!work.holds<Norm>()) return std::nullopt;
      ++started_;
      return launch({"native", work}, stream);
    });
  }

  const std::shared_ptr<Device> device_ = open_gpu(kGpu, DTRAIN_CUDNN_STANDIN, {}, {});
  std::vector<std::unique_ptr<DeviceMemory>> memory_;
  std::unique_ptr<Recording> recording_;
  int started_ = 0;
};

INSTANTIATE_TEST_SUITE_P(All, GpuNatives, testing::every_order(), testing::OrderName());

TEST_P(GpuNatives, AreUsedWhereTheyLeaveTheBitsOfTheDefinition) {
  const auto expected = by_definition();
  play(launch_all);
  EXPECT_EQ(results(), expected);
  EXPECT_EQ(started_, 2) << "once to compare, once to record";
  EXPECT_TRUE(recording_->facts().refused_kernels.empty());
  EXPECT_TRUE(recording_->facts().one_launch);
}

TEST_P(GpuNatives, ThatDoNotStartAreNotTriedAgain) {
  const auto expected = by_definition();
  play([](const Call&, cudaStream_t) { return cudaErrorCooperativeLaunchTooLarge; });
  EXPECT_EQ(results(), expected);
  EXPECT_EQ(started_, 1);
  ASSERT_EQ(recording_->facts().refused_kernels.size(), 1U);
  EXPECT_EQ(recording_->facts().refused_kernels[0].find("bn.forward: "), 0U) << recording_->facts().refused_kernels[0];
  EXPECT_TRUE(recording_->facts().one_launch);
}

TEST_P(GpuNatives, ThatComputeSomethingElseAreNotUsed) {
  const auto expected = by_definition();
  play([](const Call& call, cudaStream_t stream) {
    Norm other = *call.work.get_if<Norm>();
    other.apply.relu = false;
    return launch_all({"native", other}, stream);
  });
  EXPECT_EQ(results(), expected);
  EXPECT_EQ(started_, 1);
  EXPECT_EQ(recording_->facts().refused_kernels.size(), 1U);
  EXPECT_TRUE(recording_->facts().one_launch);
}

TEST_P(GpuNatives, ThatLeaveOutAResultAreNotUsed) {
  const auto expected = by_definition();
  play([](const Call& call, cudaStream_t stream) {
    return launch_all({"native", call.work.get_if<Norm>()->statistics}, stream);
  });
  EXPECT_EQ(results(), expected);
  EXPECT_EQ(recording_->facts().refused_kernels.size(), 1U);
}

// Its own parts, which have native kernels too, are compared before a graph is made of them.
TEST_P(GpuNatives, LeaveTheirPlaceToThoseOfTheirParts) {
  const auto expected = by_definition();
  int wrong = 0, of_parts = 0;
  runtime::play_natives([&](const Work& work, cudaStream_t stream) -> std::optional<cudaError_t> {
    if (work.holds<Norm>()) return ++wrong, cudaSuccess;
    if (!work.holds<NormStatistics<float>>()) return std::nullopt;
    ++of_parts;
    return launch_all({"native", work}, stream);
  });
  EXPECT_EQ(results(), expected);
  EXPECT_EQ(wrong, 1);
  EXPECT_EQ(of_parts, 2);
  EXPECT_EQ(recording_->facts().refused_kernels.size(), 1U);
  EXPECT_TRUE(recording_->facts().one_launch);
}

TEST_P(GpuNatives, ThatFailLaterLeaveTheirPlaceToTheDefinition) {
  const auto expected = by_definition();
  play([&](const Call& call, cudaStream_t stream) {
    return started_ == 1 ? launch_all(call, stream) : cudaErrorCooperativeLaunchTooLarge;
  });
  EXPECT_EQ(results(), expected);
  EXPECT_EQ(started_, 2);
  EXPECT_EQ(recording_->facts().refused_kernels.size(), 1U);
  EXPECT_TRUE(recording_->facts().one_launch);
}

// Products on tensor cores differ from their definition by roundings, and by nothing else.
TEST_P(GpuNatives, ThatAddInAnotherOrderAreUsedWhereTheyAreNear) {
  constexpr std::int32_t kSide = 8;
  const MuonMatrix matrix{.rows = kSide, .columns = kSide, .high = kSide, .low = kSide};
  memory_.push_back(std::make_unique<DeviceMemory>(*device_, sizeof matrix));
  const auto* const table = reinterpret_cast<const MuonMatrix*>(memory_.back()->data());
  device_->upload(memory_.back()->data(), &matrix, sizeof matrix);
  const float* const y = filled(matrix.cells());
  float* const squares = floats(matrix.square());
  using Gram = MuonGram<float>;
  const Tiled<Gram> work{Gram{{table, 1}, y, squares, matrix.square()}, 1};
  const auto refusals = [&](float factor) {
    std::vector<float> values(kSide * kSide);
    device_->download(values.data(), y, values.size() * sizeof(float));
    for (float& value : values) value *= factor;
    float* const other = floats(matrix.cells());
    device_->upload(other, values.data(), values.size() * sizeof(float));
    runtime::play_natives([=](const Work& played, cudaStream_t stream) -> std::optional<cudaError_t> {
      if (!played.holds<Tiled<Gram>>()) return std::nullopt;
      Tiled<Gram> near = *played.get_if<Tiled<Gram>>();
      near.product.y = other;
      return launch_all({"native", near}, stream);
    });
    recording_ = device_->record({{"muon: Y'Y", work}});
    recording_->run();
    device_->synchronize();
    return recording_->facts().refused_kernels.size();
  };
  EXPECT_EQ(refusals(1 + 0x1p-20f), 0U);
  EXPECT_EQ(refusals(1.01f), 1U);
  EXPECT_EQ(refusals(NAN), 1U);
}

}  // namespace
}  // namespace dtrain::backend::cuda
