// What the operators of ONNX make of numbers that they only move, and the shapes that all of them share.
#pragma once

#include <string>

#include "onnx_fold.hpp"

namespace dtrain::train {

using OnnxShape = std::vector<std::int64_t>;

// Throws UsageError.
void expect_fold(bool holds, const std::string& what);
// As NumPy broadcasts; `shape` is one that the numbers have a part in.
OnnxShape common_shape(const OnnxShape& a, const OnnxShape& b);
OnnxNumbers broadcast_to(const OnnxNumbers& in, const OnnxShape& shape);
std::int64_t attribute_of(const OnnxNode& node, const char* name, std::int64_t usual);
// Numbers that decide which numbers are made, of an input or, in older models, of an attribute.
OnnxShape known_integers(const OnnxNode& node, const char* name, const OnnxFoldInputs& in, std::size_t input);

OnnxNumbers fold_concat(const OnnxNode& node, const OnnxFoldInputs& in);
OnnxNumbers fold_constant_of_shape(const OnnxNode& node, const OnnxFoldInputs& in);
OnnxNumbers fold_expand(const OnnxNode& node, const OnnxFoldInputs& in);
OnnxNumbers fold_gather(const OnnxNode& node, const OnnxFoldInputs& in);
OnnxNumbers fold_reshape(const OnnxNode& node, const OnnxFoldInputs& in);
OnnxNumbers fold_shape(const OnnxNode& node, const OnnxFoldInputs& in);
OnnxNumbers fold_size(const OnnxNode& node, const OnnxFoldInputs& in);
OnnxNumbers fold_slice(const OnnxNode& node, const OnnxFoldInputs& in);
OnnxNumbers fold_squeeze(const OnnxNode& node, const OnnxFoldInputs& in);
OnnxNumbers fold_transpose(const OnnxNode& node, const OnnxFoldInputs& in);
OnnxNumbers fold_unsqueeze(const OnnxNode& node, const OnnxFoldInputs& in);

}  // namespace dtrain::train
