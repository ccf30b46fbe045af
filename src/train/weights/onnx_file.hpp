// The tensors and the documents of an ONNX model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "foreign_tensor.hpp"

namespace dtrain::train {

struct OnnxFile {
  std::vector<ForeignTensor> tensors;           // initializers, which borrow from the file
  std::map<std::string, std::string> metadata;  // metadata_props
};

// Throws DataError naming `source` and the tensor: damage, numbers that lie in other files.
OnnxFile parse_onnx_file(ByteView file, const std::string& source);

}  // namespace dtrain::train
