#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/train/export.hpp>
#include <dtrain/train/weights.hpp>

#include "weights_file.hpp"

namespace dtrain::train {
namespace {

const Json& network_document(const WeightsFile& weights, const Path& file) {
  if (const auto& why = weights.no_graph()) throw DataError(why->what(), why->hint());
  if (weights.graph().is_null())
    throw DataError(file.string() + ": is no ONNX model", "name a file that ends in .onnx");
  return weights.graph();
}

// The document with images of this size, which dtrain's own layers take as they are, and with a last layer of so many
// outputs. The network of another program was read for this size already.
Json changed(const Json& network, std::optional<nn::Shape> image, std::optional<int> classes) {
  Json::Array nodes = network.at("nodes").as_array();
  if (image && !nodes.empty()) nodes.front()["shape"] = Json::array({image->c, image->h, image->w});
  const auto has_weight = [](const Json& node) {
    const Json* layer = node.find("layer");
    return layer && (*layer == Json("dense") || *layer == Json("convolution"));
  };
  const auto last = std::find_if(nodes.rbegin(), nodes.rend(), has_weight);
  if (classes && last != nodes.rend()) (*last)["out"] = *classes;
  Json document = network;
  document["nodes"] = std::move(nodes);
  return document;
}

}  // namespace

Checkpoint import_onnx(const Path& file) {
  const WeightsFile weights(file);
  const nn::Graph graph = nn::graph_from_json(network_document(weights, file), file.string());
  return load_weights({.file = file, .whole = true}, graph).checkpoint;
}

nn::Graph network_of_onnx_model(const Path& file, std::optional<nn::Shape> image, std::optional<int> classes) {
  const WeightsFile weights(file, image);
  return nn::graph_from_json(changed(network_document(weights, file), image, classes), file.string());
}

}  // namespace dtrain::train
