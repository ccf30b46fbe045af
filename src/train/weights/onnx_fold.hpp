// Constant folding: what the operators of an ONNX model compute of numbers that are known before it runs. PyTorch
// writes such chains for the widths of a Pad, the extents of a Reshape and the like.
#pragma once

#include <vector>

#include "onnx_file.hpp"
#include "onnx_numbers.hpp"

namespace dtrain::train {

// One for each input of the node; nullptr: it is left out.
using OnnxFoldInputs = std::vector<const OnnxNumbers*>;

struct OnnxFold {
  const char* name;
  std::size_t least, most;  // inputs
  // Throws UsageError without the node's name: inputs that the operator does not take, more than kMostOnnxNumbers.
  OnnxNumbers (*fold)(const OnnxNode& node, const OnnxFoldInputs& inputs);
};
const std::vector<OnnxFold>& onnx_folds();

// nullptr: the operator is none for numbers.
const OnnxFold* find_onnx_fold(const OnnxNode& node);
// What the node computes, if its operator has the fold; throws as the fold does.
OnnxNumbers fold_onnx_node(const OnnxFold& fold, const OnnxNode& node, const OnnxFoldInputs& inputs);

}  // namespace dtrain::train
