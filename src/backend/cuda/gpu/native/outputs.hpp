// What an operation with a native kernel leaves, for a comparison of the kernel with the definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "../../call.hpp"

namespace dtrain::backend::cuda {

// Behind the last byte, up to a whole word, is memory that may be read and written again.
struct Output {
  void* data;
  std::int64_t bytes;
  // What its values are, where the kernel adds up in an order of its own; nullopt: it leaves the definition's bits.
  std::optional<DType> rounded{};
  std::size_t whole_bytes() const {
    constexpr std::int64_t kWord = sizeof(std::uint32_t);
    return static_cast<std::size_t>(packs_of(bytes, kWord) * kWord);
  }
};
using Outputs = std::vector<Output>;

// For values that are added up in two orders, by what the definition leaves. What cancels has the roundings of what it
// was made of.
template <typename T>
Tolerance tolerance_of(std::span<const std::byte> defined) {
  constexpr float kOfLargest = 0.01f;
  constexpr float kRoundings = std::is_same_v<T, float> ? 1e-5f : std::is_same_v<T, Half> ? 0x1p-9f : 0x1p-6f;
  float largest = 0;
  for (std::size_t at = 0; at + sizeof(T) <= defined.size(); at += sizeof(T)) {
    T value{};
    std::memcpy(&value, defined.data() + at, sizeof value);
    if (std::isfinite(widen(value))) largest = std::max(largest, std::abs(widen(value)));
  }
  return {.relative = kRoundings, .absolute = kRoundings * kOfLargest * largest, .takes_not_finite = true};
}
inline Tolerance tolerance_beside(std::span<const std::byte> defined, DType dtype) {
  Tolerance tolerance;
  with_type(dtype, [&]<typename T>(T) { tolerance = tolerance_of<T>(defined); });
  return tolerance;
}

inline Output floats_at(float* data, std::int64_t count) { return {data, count * std::int64_t{sizeof(float)}}; }
template <typename T>
Output rows_at(T* data, std::int64_t rows, std::int32_t c) {
  return {data, rows * c * static_cast<std::int64_t>(sizeof(T))};
}

// What is made of folded sums.
inline void add_finished(const StoreSums& work, Outputs& to) { to.push_back(floats_at(work.to, work.width)); }
template <typename T>
void add_finished(const NormFromBatch<T>& work, Outputs& to) {
  const std::int32_t c = work.coefficients.c;
  constexpr int kRowsOfForward = 4;
  to.push_back(floats_at(&work.coefficients.mean(0), kRowsOfForward * std::int64_t{c}));
  to.push_back(rows_at(work.coefficients.template factors<T>(), 2, c));
  to.push_back(floats_at(work.mean_out, c));
  to.push_back(floats_at(work.variance_out, c));
}
inline void add_finished(const NormGradientFinish& work, Outputs& to) {
  const std::int32_t c = work.coefficients.c;
  to.push_back(floats_at(&work.coefficients.gradient_mean(0), 2 * std::int64_t{c}));
  if (work.dgamma) to.push_back(floats_at(work.dgamma, c));
  if (work.dbeta) to.push_back(floats_at(work.dbeta, c));
}
template <typename Sums, typename Finish>
void add_outputs(const FoldedSums<Sums, Finish>& work, Outputs& to) {
  add_finished(work.finish, to);
  if constexpr (requires { work.sums.kept; }) {
    if (work.sums.kept) to.push_back(rows_at(work.sums.kept, work.sums.cut.rows, work.sums.channels()));
  }
}
template <typename T, bool Gelu, bool NormsResidual>
void add_outputs(const NormForward<T, Gelu, NormsResidual>& work, Outputs& to) {
  add_outputs(work.statistics, to);
  const NormApply<T, Gelu, NormsResidual>& apply = work.apply;
  to.push_back(rows_at(apply.y, apply.cut.rows, apply.coefficients.c));
  if (apply.passed) to.push_back({apply.passed, apply.cut.rows * apply.packs()});
}
template <typename T, bool Gelu>
void add_outputs(const NormBackward<T, Gelu>& work, Outputs& to) {
  add_outputs(work.totals, to);
  to.push_back(rows_at(work.gradient.dx, work.gradient.cut.rows, work.gradient.coefficients.c));
}
template <typename T>
Output rounded_at(T* data, std::int64_t count) {
  constexpr DType kType = std::is_same_v<T, float>  ? DType::float32
                          : std::is_same_v<T, Half> ? DType::float16
                                                    : DType::bfloat16;
  return {data, count * static_cast<std::int64_t>(sizeof(T)), kType};
}
template <typename T>
void add_outputs(const Tiled<MuonGram<T>>& work, Outputs& to) {
  to.push_back(rounded_at(work.product.squares, work.product.total));
}
template <typename T>
void add_outputs(const Tiled<MuonPolynomial<T>>& work, Outputs& to) {
  to.push_back(rounded_at(work.product.result, work.product.total));
}
template <typename T>
void add_outputs(const Tiled<MuonAdvance<T>>& work, Outputs& to) {
  to.push_back(rounded_at(work.product.to, work.product.total));
}
// What has no native kernel. An operation that is missing above does not compile.
template <IsKernel Kernel>
void add_outputs(const Kernel&, Outputs&) {}
inline void add_outputs(const Convolution&, Outputs&) {}
inline void add_outputs(const EventMarker&, Outputs&) {}

// Empty: the work has no native kernel.
inline Outputs outputs_of(const Work& work) {
  Outputs outputs;
  work.visit([&](const auto& each) { add_outputs(each, outputs); });
  return outputs;
}

}  // namespace dtrain::backend::cuda
