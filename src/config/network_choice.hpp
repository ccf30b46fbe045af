// Which network is trained: a known one by name and depth, or a person's own file.
#pragma once

#include <optional>
#include <string>

#include <dtrain/nn/graph.hpp>
#include <dtrain/nn/networks.hpp>

#include "data_options.hpp"
#include "option_set.hpp"

namespace dtrain::config {

struct NetworkChoice {
  nn::NetworkOptions options;        // image and classes come from the data's options
  std::optional<int> known_classes;  // those of training records or checkpoint, where the user chose no number
  bool is_onnx() const { return options.name.ends_with(".onnx"); }
  bool is_file() const { return options.name.ends_with(".json") || is_onnx(); }
};

// `role`: what the network is for, with which the help of --network begins.
void bind_network(OptionSet& set, NetworkChoice& choice, const std::string& role = "network to train");

// A classifier needs two classes; a detector also tells objects of one class from the background. Throws SettingError.
void require_classes(const std::string& network, int classes);

// Builds or reads the graph. A file that says image shape and classes itself gives them to `data` where the person
// chose none. Throws UsageError, DataError.
nn::Graph choose_graph(const NetworkChoice& choice, const OptionSet& set, DataOptions& data);

// What to say where images of a network of torchvision or timm have a size that the user did not choose, and that is
// not the network's usual one. nullopt: nothing.
std::optional<std::string> unusual_image(const NetworkChoice& choice, const OptionSet& set, const nn::Shape& image);

// The person said something about the network, so a checkpoint's graph must agree.
bool network_is_chosen(const OptionSet& set);
// Those of the network that the user gave, --drop-path too, each as it is written on the command line.
std::vector<std::string> chosen_network_options(const OptionSet& set);

// What a checkpoint's network has that `mine` has not: "it was trained with another --drop-path", or its first layer
// that differs. Empty: they are the same, except perhaps for the name of the whole: MXNet's symbol has none.
std::string difference_of(const nn::Graph& saved, const nn::Graph& mine);

// Of a checkpoint's network, which no other option describes. Throws UsageError where it has other shares.
void require_drop_path(const nn::Graph& saved, float share);

}  // namespace dtrain::config
