// The tensors, the operators and the documents of an ONNX model.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "foreign/foreign_tensor.hpp"

namespace dtrain::train {

// What a node says besides its inputs. Which member holds an attribute is known by its name.
struct OnnxAttribute {
  std::int64_t integer = 0;
  float real = 0;
  bool is_real = false;  // of the number of a tensor
  std::string text{};
  std::vector<std::int64_t> integers{};
};

struct OnnxNode {
  std::string name;  // may be empty, and the same for two nodes
  std::string op;    // with its domain in front, where that is not ONNX's own
  std::vector<std::string> inputs, outputs;
  std::map<std::string, OnnxAttribute> attributes;
};

// Whole numbers: extents, axes, indices.
struct OnnxIntegers {
  std::vector<std::int64_t> shape, values;
};

struct OnnxInput {
  std::string name;
  std::vector<std::int64_t> extents;  // 0: free
  bool is_float32 = false;
};

// Tensors borrow from the file and from `owners`.
struct OnnxFile {
  std::vector<ForeignTensor> tensors;               // initializers of real numbers
  std::vector<ForeignTensor> constants;             // the same of Constant nodes
  std::map<std::string, OnnxIntegers> integers;     // initializers and Constant nodes of whole numbers
  std::map<std::string, std::string> metadata;      // metadata_props
  std::set<std::string> others;                     // names of initializers and constants of other than real numbers
  std::vector<std::shared_ptr<const void>> owners;  // of tensors that the file does not hold as they are in memory
  std::vector<OnnxNode> nodes;                      // but Constant nodes
  std::vector<OnnxInput> inputs;                    // initializers may be among them
  std::vector<std::string> outputs;
  std::int64_t operator_set = 0;  // of ONNX's own operators; 0: the model states none
};

// Throws DataError naming `source` and the tensor: damage, numbers that lie in other files.
OnnxFile parse_onnx_file(ByteView file, const std::string& source);

}  // namespace dtrain::train
