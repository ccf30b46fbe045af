// The numbers that an ONNX model computes beside its layers: extents, indices and factors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace dtrain::train {

struct OnnxNumber {
  double value = 0;         // whole ones are exact below 2^53
  bool of_samples = false;  // it depends on a number of samples that the model leaves free
  friend bool operator==(const OnnxNumber&, const OnnxNumber&) = default;
};

// A tensor of few numbers, in order.
struct OnnxNumbers {
  std::vector<std::int64_t> shape;
  std::vector<OnnxNumber> values;
  bool is_real = false;

  std::vector<std::int64_t> integers() const;
  bool of_samples() const;  // one of them at least
};

inline constexpr std::int64_t kMostOnnxNumbers = 64;  // more of them are weights

OnnxNumbers whole_numbers(std::vector<std::int64_t> shape, std::span<const std::int64_t> values);

}  // namespace dtrain::train
