// The numbers that an ONNX model computes beside its layers: extents, indices and factors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onnx_file.hpp"

namespace dtrain::train {

// A tensor of few numbers, in order. Whole ones are exact.
struct OnnxNumbers {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  bool is_real = false;
  std::vector<std::int64_t> integers() const;
};

inline constexpr std::size_t kMostOnnxNumbers = 64;  // more of them are weights

// What the node computes of its inputs. nullopt: it is no operator for numbers, or has other inputs than it takes.
std::optional<OnnxNumbers> compute_numbers(const OnnxNode& node, const std::vector<OnnxNumbers>& inputs);

}  // namespace dtrain::train
