#include <dtrain/train/export.hpp>

#include <fmt/format.h>

#include <span>

#include <dtrain/nn/networks.hpp>

#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/torch_name.hpp"
#include "network_text.hpp"

namespace dtrain::train {
namespace {

// Of the graph's tensors: parameters, then statistics.
void name_as_torch(std::span<NamedTensor> tensors, const nn::Graph& graph) {
  const auto statistics = tensors.subspan(graph.parameters.size());
  for (const nn::Node& node : graph.nodes) {
    for (const int index : node.parameters) {
      const auto at = static_cast<std::size_t>(index);
      tensors[at].name = torch_name(node, graph.parameters[at]);
    }
    for (const int index : node.statistics) {
      const auto at = static_cast<std::size_t>(index);
      statistics[at].name = torch_name(node, graph.statistics[at]);
    }
  }
}

}  // namespace

std::vector<Path> export_safetensors(const Checkpoint& checkpoint, const Path& file) {
  std::vector<NamedTensor> tensors = weight_tensors(checkpoint.graph, checkpoint.state);
  name_as_torch(tensors, checkpoint.graph);
  Json metadata = Json::object({{"format", "pt"},  // what PyTorch's readers ask for: plain arrays
                                {kExportedNetwork, checkpoint.graph.name},
                                {kExportedPreprocessing, checkpoint.job.preprocessing.dump()}});
  if (const int anchors = nn::anchor_size(checkpoint.graph); anchors > 0)
    metadata[kAnchorSize] = fmt::format("{}", anchors);
  if (const auto network = nn::options_of_network(checkpoint.graph)) metadata[kNetworkOptions] = network_text(*network);
  make_folder(file.parent_path());
  AtomicFile out(file);
  write_safetensors(out, safetensors_header(tensors, metadata), tensors);
  out.commit();
  return {file};
}

}  // namespace dtrain::train
