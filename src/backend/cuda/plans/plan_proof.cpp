#include "plan_proof.hpp"

#include <cstring>

#include <dtrain/base/random.hpp>

namespace dtrain::backend::cuda {
namespace {

constexpr std::uint64_t kStep = 256;
std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kStep - 1) / kStep * kStep; }
std::uint64_t value_bytes(DType dtype) { return dtype == DType::float32 ? sizeof(float) : sizeof(Half); }
std::uint64_t bytes_of_values(DType dtype, std::int64_t values) {
  return aligned(static_cast<std::uint64_t>(values) * value_bytes(dtype));
}

// Values of a, b and the result.
struct Sizes {
  std::int64_t a, b, result;
};

Sizes sizes_of(Direction direction, const ConvolutionShape& s) {
  switch (direction) {
    case Direction::forward:
      return {s.inputs(), s.weights(), s.outputs()};
    case Direction::backward_data:
      return {s.outputs(), s.weights(), s.inputs()};
    case Direction::backward_weights:
      break;
  }
  return {s.inputs(), s.outputs(), s.weights()};
}

}  // namespace

ProofLayout::ProofLayout(const Convolution& work) : work_(work) {
  const Sizes sizes = sizes_of(work.direction, work.shape);
  const auto place = [&](std::uint64_t& offset, std::int64_t values) {
    offset = inputs_;
    inputs_ += bytes_of_values(work.dtype, values);
  };
  place(a_, work.normed.fused ? 0 : sizes.a);
  place(b_, sizes.b);
  place(x_, work.normed.fused ? work.shape.inputs() : 0);
  place(factors_, work.normed.fused ? 2 * work.shape.in : 0);
  moments_ = bytes_of_values(work.dtype, sizes.result);
  results_ = moments_ + (work.moments ? bytes_of_values(DType::float32, 2 * std::int64_t{work.shape.out}) : 0);
}

Convolution ProofLayout::at(std::byte* memory) const {
  Convolution work = work_;
  work.a = memory + a_;
  work.b = memory + b_;
  work.result = memory + inputs_;
  if (work.normed.fused) {
    work.normed.x = memory + x_;
    work.normed.factors = memory + factors_;
  }
  if (work.moments) work.moments = reinterpret_cast<float*>(memory + inputs_ + moments_);
  return work;
}

std::vector<std::byte> ProofLayout::inputs() const {
  constexpr float kHalf = 0x1p31f;  // of the numbers of 32 bits
  std::vector<std::byte> bytes(static_cast<std::size_t>(inputs_));
  with_type(work_.dtype, [&]<typename T>(T) {
    // Whole blocks of numbers fit, because the bytes are a multiple of kStep.
    std::uint32_t block = 0;
    for (std::size_t at = 0; at < bytes.size(); ++block) {
      for (const std::uint32_t number : philox({block}, {})) {
        T value{};
        narrow(static_cast<float>(number) / kHalf - 1, value);
        std::memcpy(bytes.data() + at, &value, sizeof value);
        at += sizeof value;
      }
    }
  });
  return bytes;
}

bool always_the_same(const std::function<std::optional<std::vector<std::byte>>()>& run) {
  constexpr int kRepeats = 3;
  const auto first = run();
  if (!first) return false;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    if (run() != first) return false;
  }
  return true;
}

}  // namespace dtrain::backend::cuda
