// A file of weights, of whichever known format.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/nn/graph.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/safetensors.hpp"
#include "foreign/foreign_tensor.hpp"

namespace dtrain::train {

struct OnnxFile;

class WeightsFile {
 public:
  // Throws DataError, also for a file of another format.
  // `place` may be a URL with a hash, read through `store` (far_weights.hpp).
  // `image` as of network_of_onnx(): a model of another program has another network for another size of its images.
  explicit WeightsFile(const Path& place, std::optional<nn::Shape> image = {}, const SharedStore& store = {});
  // In the order of the file; they borrow from this object.
  const std::vector<ForeignTensor>& tensors() const { return tensors_; }
  // Reads all tensors. Throws DataError where they are not those that the manifest of their checkpoint describes.
  void check_values() const;
  // What dtrain wrote into its own exports. In files of others only the names of their classes, or null.
  const Json& preprocessing() const { return preprocessing_; }
  int anchor_size() const { return anchor_size_; }  // of a detector that dtrain wrote; 0: not known
  // What an export of dtrain says of its network; image and classes are of no meaning.
  const std::optional<nn::NetworkOptions>& network() const { return network_; }
  // The network of an ONNX model (dtrain.graph/1), or null, and why an ONNX model has none that dtrain reads.
  const Json& graph() const { return graph_; }
  const std::optional<DataError>& no_graph() const { return no_graph_; }

 private:
  void read(const Path& path, const std::optional<nn::Shape>& image);
  void read_safetensors(const Path& path);
  void read_export(const Json& metadata, const std::string& source);
  void read_onnx(const std::string& source, const std::optional<nn::Shape>& image);
  void read_onnx_network(OnnxFile& onnx, const std::string& source, const std::optional<nn::Shape>& image);

  Path path_;  // on this machine
  MappedFile file_;
  std::vector<ForeignTensor> tensors_;
  std::vector<TensorHash> hashes_;  // of each of the tensors; empty: no checkpoint
  Json preprocessing_, graph_;
  int anchor_size_ = 0;
  std::optional<nn::NetworkOptions> network_;
  std::optional<DataError> no_graph_;
  std::vector<std::shared_ptr<const void>> owners_;  // of tensors that lie elsewhere
};

}  // namespace dtrain::train
