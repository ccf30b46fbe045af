#include "onnx_numbers.hpp"

#include <algorithm>
#include <cmath>

namespace dtrain::train {

std::vector<std::int64_t> OnnxNumbers::integers() const {
  constexpr double kLargest = 9e15;  // whole numbers below it are exact
  std::vector<std::int64_t> whole;
  for (const OnnxNumber& number : values) {
    const double known = std::isnan(number.value) ? 0 : number.value;
    whole.push_back(static_cast<std::int64_t>(std::clamp(known, -kLargest, kLargest)));
  }
  return whole;
}

bool OnnxNumbers::of_samples() const { return std::ranges::any_of(values, &OnnxNumber::of_samples); }

OnnxNumbers whole_numbers(std::vector<std::int64_t> shape, std::span<const std::int64_t> values) {
  OnnxNumbers made{std::move(shape), {}, false};
  for (const std::int64_t value : values) made.values.push_back({static_cast<double>(value), false});
  return made;
}

}  // namespace dtrain::train
