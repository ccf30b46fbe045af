#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

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

// The node without what the run that made the file chose: which layers learn, norms over all workers, and weights of
// the classes of its data.
Json without_choices_of_run(const Json& node) {
  constexpr std::array<std::string_view, 3> kChoices = {"learns", "synchronized", "class_weights"};
  Json kept = Json::object();
  for (const auto& [key, value] : node.as_object()) {
    if (std::ranges::find(kChoices, key) == kChoices.end()) kept[key] = value;
  }
  return kept;
}

// What the loss of a detector says; nullptr: the network is none.
const Json* classes_of_detector(const Json::Array& nodes) {
  return nodes.empty() ? nullptr : nodes.back().find("classes");
}

// They are part of several of its layers.
void require_classes_of_detector(const Json& network, int classes, const Path& file) {
  const Json* found = classes_of_detector(network.at("nodes").as_array());
  if (!found || *found == Json(classes)) return;
  throw DataError(
      fmt::format("{}: finds objects of {} classes, not {}", file.string(), found->dump(), classes),
      "a detector that setting 'network' names, such as retinanet, takes its weights with setting 'pretrained'");
}

// The document for a new run, with images of this size, which dtrain's own layers take as they are, and with a last
// layer of so many outputs. The network of another program was read for this size already.
Json changed(const Json& network, std::optional<nn::Shape> image, std::optional<int> classes) {
  Json::Array nodes = network.at("nodes").as_array();
  std::ranges::transform(nodes, nodes.begin(), without_choices_of_run);
  if (image && !nodes.empty()) nodes.front()["shape"] = Json::array({image->c, image->h, image->w});
  const auto has_weight = [](const Json& node) {
    const Json* layer = node.find("layer");
    return layer && (*layer == Json("dense") || *layer == Json("convolution"));
  };
  const auto last = std::find_if(nodes.rbegin(), nodes.rend(), has_weight);
  if (classes && !classes_of_detector(nodes) && last != nodes.rend()) (*last)["out"] = *classes;
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
  const Json& network = network_document(weights, file);
  if (classes) require_classes_of_detector(network, *classes, file);
  return nn::graph_from_json(changed(network, image, classes), file.string());
}

}  // namespace dtrain::train
