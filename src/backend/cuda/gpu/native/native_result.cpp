#include "native_result.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace dtrain::backend::cuda {
namespace {

constexpr float roundings(float) { return 1e-5f; }
constexpr float roundings(Half) { return 0x1p-9f; }
constexpr float roundings(Bf16) { return 0x1p-6f; }
constexpr DType dtype_of(float) { return DType::float32; }
constexpr DType dtype_of(Half) { return DType::float16; }
constexpr DType dtype_of(Bf16) { return DType::bfloat16; }

template <typename T>
NativeResult result(T* values, std::int64_t number) {
  return {values, static_cast<std::size_t>(number) * sizeof(T), dtype_of(T{})};
}

struct Result {
  template <typename T>
  std::optional<NativeResult> operator()(const Tiled<MuonGram<T>>& work) const {
    return result(work.product.squares, work.product.total);
  }
  template <typename T>
  std::optional<NativeResult> operator()(const Tiled<MuonPolynomial<T>>& work) const {
    return result(work.product.result, work.product.total);
  }
  template <typename T>
  std::optional<NativeResult> operator()(const Tiled<MuonAdvance<T>>& work) const {
    return result(work.product.to, work.product.total);
  }
  template <typename Other>
  std::optional<NativeResult> operator()(const Other&) const {
    return std::nullopt;
  }
};

template <typename T>
std::vector<float> widened(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  std::vector<float> wide(values.size());
  std::ranges::transform(values, wide.begin(), [](T value) { return widen(value); });
  return wide;
}

}  // namespace

std::optional<NativeResult> result_of(const Work& work) { return std::visit(Result{}, work); }

bool are_near(std::span<const std::byte> native, std::span<const std::byte> defined, DType dtype) {
  constexpr float kOfLargest = 0.01f;  // what cancels has the roundings of what it was made of
  bool near = native.size() == defined.size();
  with_type(dtype, [&]<typename T>(T) {
    const std::vector<float> a = widened<T>(native), b = widened<T>(defined);
    float largest = 0;
    for (const float value : b) largest = std::isfinite(value) ? std::max(largest, std::abs(value)) : largest;
    for (std::size_t k = 0; near && k < b.size(); ++k) {
      const bool same = a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]));
      near = same ||
             (std::isfinite(b[k]) && std::abs(a[k] - b[k]) <= roundings(T{}) * (std::abs(b[k]) + kOfLargest * largest));
    }
  });
  return near;
}

}  // namespace dtrain::backend::cuda
