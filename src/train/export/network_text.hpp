// The options of a network as one text, for a file of tensors that are of no network that can be known by their names.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <dtrain/nn/networks.hpp>

namespace dtrain::train {

// In the metadata of an exported .safetensors file, where the network is one of nn::network_names().
inline constexpr const char* kNetworkOptions = "network_options";

// What nn::options_of_network() knows, but for image and classes, which are those of the weights, and the anchors, of
// which kAnchorSize has the size.
std::string network_text(const nn::NetworkOptions& network);
// nullopt: a network of a newer dtrain. Throws DataError naming `source`.
std::optional<nn::NetworkOptions> network_from_text(std::string_view text, std::string_view source);

}  // namespace dtrain::train
