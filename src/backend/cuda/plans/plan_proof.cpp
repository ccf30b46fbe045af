#include "plan_proof.hpp"

#include <cmath>
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
  result_ = sizes.result;
  moments_ = bytes_of_values(work.dtype, sizes.result);
  results_ = moments_ + (work.moments ? bytes_of_values(DType::float32, 2 * std::int64_t{work.shape.out}) : 0);
}

Convolution ProofLayout::at(std::byte* memory, std::byte* results) const {
  Convolution work = work_;
  work.a = memory + a_;
  work.b = memory + b_;
  work.result = results;
  if (work.normed.fused) {
    work.normed.x = memory + x_;
    work.normed.factors = memory + factors_;
  }
  if (work.moments) work.moments = reinterpret_cast<float*>(results + moments_);
  return work;
}

std::vector<std::byte> ProofLayout::pattern() const {
  constexpr float kHalf = 0x1p31f;  // of the numbers of 32 bits
  constexpr std::size_t kNumbers = 1'000'003;
  std::vector<std::byte> bytes;
  with_type(work_.dtype, [&]<typename T>(T) {
    std::vector<T> values;
    for (std::uint32_t block = 0; values.size() < kNumbers; ++block) {
      for (const std::uint32_t number : philox({block}, {})) {
        narrow(static_cast<float>(number) / kHalf - 1, values.emplace_back());
      }
    }
    bytes.resize(kNumbers * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
  });
  return bytes;
}

Tolerance proof_tolerance(DType dtype, std::int64_t products) {
  // Two neighbours among the type's numbers, and for each product what tensor cores lose of it, generously: a value at
  // the wrong place is off by about the square root of their number.
  constexpr float kPerProduct = 0x1p-18f;
  const float relative = dtype == DType::bfloat16 ? 0x1p-7f : dtype == DType::float16 ? 0x1p-10f : 0x1p-18f;
  return {relative, kPerProduct * static_cast<float>(products)};
}

Tolerance moments_tolerance(std::int64_t products, std::int64_t rows) {
  const auto sizes = std::sqrt(static_cast<float>(products)) * static_cast<float>(rows);
  return {0x1p-12f, sizes * 0x1p-20f};
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
