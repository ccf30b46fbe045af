#include <dtrain/base/error.hpp>
#include <dtrain/train/weights.hpp>

#include "checkpoint/manifest.hpp"
#include "far_weights.hpp"
#include "fit_weights.hpp"
#include "weights_file.hpp"

namespace dtrain::train {
namespace {

constexpr int kImageNetClasses = 1000;

// Those that others publish weights of, with a number of classes that does not matter.
std::vector<nn::NetworkOptions> published_networks() {
  const auto of = [](const std::string& name, const std::string& backbone) {
    const int size = nn::pretrained_images(name).size;
    return nn::NetworkOptions{
        .name = name, .image = {3, size, size}, .classes = kImageNetClasses, .backbone = backbone};
  };
  std::vector<nn::NetworkOptions> networks;
  for (const std::string& name : nn::torch_network_names()) networks.push_back(of(name, ""));
  for (const std::string& name : nn::detector_names()) {
    for (const std::string& backbone : nn::backbone_names()) networks.push_back(of(name, backbone));
  }
  return networks;
}

std::optional<nn::NetworkOptions> network_of_checkpoint(const Path& file) {
  const Path manifest = Path(file).replace_extension(".json");
  return nn::options_of_network(parse_manifest(read_file(manifest), manifest.string()).checkpoint.graph);
}

// The network that has most tensors in the file, among those that others publish weights of.
std::optional<nn::NetworkOptions> published_network_of(const WeightsFile& weights) {
  std::optional<nn::NetworkOptions> best;
  std::size_t most = 0;
  for (const nn::NetworkOptions& options : published_networks()) {
    const auto fitting = whole_fit(weights.tensors(), nn::build_network(options));
    if (!fitting || *fitting <= most) continue;
    most = *fitting;
    best = options;
  }
  return best;
}

}  // namespace

std::optional<nn::NetworkOptions> stated_network_of_weights(const Path& place) {
  const Path file = weights_on_this_machine(place);
  return is_checkpoint_file(file) ? network_of_checkpoint(file) : WeightsFile(file).network();
}

std::optional<nn::NetworkOptions> network_of_weights(const Path& place) {
  const Path file = weights_on_this_machine(place);
  const WeightsFile weights(file);
  if (is_checkpoint_file(file)) return network_of_checkpoint(file);
  std::optional<nn::NetworkOptions> best = weights.network();
  if (!best) best = published_network_of(weights);
  const int anchors = weights.anchor_size();
  if (best && anchors != nn::kUsualAnchorSize) best->anchor_size = anchors;
  if (!best && !weights.graph().is_null()) return nn::NetworkOptions{.name = file.string()};
  return best;
}

}  // namespace dtrain::train
