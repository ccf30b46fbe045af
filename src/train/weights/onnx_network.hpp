// The network of an ONNX model of another program, where dtrain's layers compute what its operators do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/nn/graph.hpp>

#include "onnx_file.hpp"

namespace dtrain::train {

struct OnnxNetwork {
  nn::Graph graph;                     // its tensors have the names of the initializers
  std::vector<ForeignTensor> tensors;  // those of the graph, by its names and shapes; they borrow from the file
  std::vector<std::shared_ptr<const void>> owners;  // of tensors that do not lie in the file
};

// What computes the first output of the model, less a softmax or a sigmoid at its end, which is the kind of the graph's
// loss. `image` replaces the size that the model states, or stands for one that it leaves free; without either, images
// have ImageNet's usual size. Throws DataError naming `source` and the node: an operator or an attribute that no layer
// has, tensors that do not fit.
OnnxNetwork network_of_onnx(const OnnxFile& onnx, const std::string& source, std::optional<nn::Shape> image = {});

}  // namespace dtrain::train
