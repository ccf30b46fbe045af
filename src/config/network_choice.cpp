#include "network_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/nn/detection.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/train/weights.hpp>

namespace dtrain::config {

void bind_network(OptionSet& set, NetworkChoice& choice, const std::string& role) {
  nn::NetworkOptions& options = choice.options;
  set.group("Network");
  set.add(
         "--network", options.name, "NAME|FILE",
         role + ": " + join(nn::own_network_names(), ", ") + ", a detector (" + join(nn::detector_names(), ", ") +
             "), one of torchvision's by its name, such as resnet50 or convnext_tiny, or a .json file with an MXNet "
             "symbol or a graph of `dtrain inspect --graph`, or an .onnx model; `dtrain help networks` lists the names")
      .offers = Offers::networks;
  set.add("--num-layers", options.num_layers, "N",
          "number of layers, for networks with several depths; 0 for the network's usual depth", at_least(0));
  set.add("--backbone", options.backbone, "NAME",
          "for detectors, network below the feature pyramid: " + join(nn::backbone_names(), ", ") +
              "; empty for resnet-50");
  set.add(
      "--proposals", options.proposals, "N",
      "for faster-rcnn and mask-rcnn, number of regions of a picture that the second stage looks into; a quarter of "
      "them may be objects; 0 for 512",
      at_least(0));
  set.add(
      "--anchor-size", options.anchor_size, "PIXELS",
      fmt::format("for detectors, size of the smallest anchors in pixels of the image, doubled from level to level of "
                  "the pyramid; a half or a quarter of the usual one finds small objects in small images; 0 for {}",
                  nn::kUsualAnchorSize),
      at_least(0));
  set.add("--width", options.width, "CHANNELS",
          "number of channels of the first stage of a resnet, resnext or speednet; 0 for the usual number",
          at_least(0));
  set.add("--batch-norm", options.batch_norm, "for vgg, add batch norm after each convolution");
  set.add("--drop-path", options.drop_path, "SHARE",
          "for convnext, vit and efficientnet, share of samples that skip the last residual block in training; earlier "
          "blocks are skipped less often",
          between(0, 0.99));
  set.add("--label-smoothing", options.label_smoothing, "SHARE",
          "share of the target probability that is spread over all classes", between(0, 0.99));
}

// The last layer of a model has as many outputs as there are classes: its own where no other number is known.
static nn::Graph read_onnx(const NetworkChoice& choice, const OptionSet& set, const DataOptions& data) {
  std::optional<nn::Shape> image;
  std::optional<int> classes = choice.known_classes;
  if (set.chosen("image-shape")) image = data.image;
  if (set.chosen("num-classes")) classes = data.classes;
  return train::network_of_onnx_model(choice.options.name, image, classes);
}

static nn::Graph read_graph(const std::string& file, const OptionSet& set, const DataOptions& data) {
  const Json document = Json::parse(read_file(file), file);
  const bool symbol = !document.is_object() || !document.find("schema");
  std::optional<nn::Shape> image;
  std::optional<int> classes;
  // A symbol holds no shape of its input.
  if (symbol || set.chosen("image-shape")) image = data.image;
  if (set.chosen("num-classes")) classes = data.classes;
  return nn::graph_from_json(document, file, image, classes);
}

// A file has a loss of its own, which the recipe changes as it changes a network by name.
static void take_smoothing_of_recipe(const nn::NetworkOptions& options, const OptionSet& set, nn::Graph& graph) {
  const Option* const smoothing = set.find("label-smoothing");
  if (!smoothing || smoothing->source != Source::recipe) return;
  if (auto* const loss = std::get_if<nn::SoftmaxLoss>(&graph.nodes.back().layer)) {
    loss->label_smoothing = options.label_smoothing;
  }
}

void require_classes(const std::string& network, int classes) {
  if (classes >= (nn::is_detector(network) ? 1 : 2)) return;
  throw SettingError("num-classes", fmt::format("{} is a classifier, which needs at least 2 classes", network),
                     "pack pictures of another class as well, or train a detector on boxes");
}

static std::string extents(const nn::Shape& shape) { return fmt::format("{},{},{}", shape.c, shape.h, shape.w); }

// That of the published weights; nullopt: the network is none of torchvision's or timm's.
static std::optional<nn::Shape> usual_image(const std::string& network) {
  const std::vector<std::string> names = nn::torch_network_names();
  if (std::ranges::find(names, network) == names.end()) return std::nullopt;
  const int size = nn::pretrained_images(network).size;
  return nn::Shape{3, size, size};
}

// Names the usual size of the images where the network cannot be built for another one that the user did not choose.
static nn::Graph build_with_hint(nn::NetworkOptions options, const OptionSet& set) {
  try {
    return nn::build_network(options);
  } catch (const UsageError& error) {
    const auto usual = usual_image(options.name);
    if (!usual || set.chosen("image-shape")) throw;
    options.image = *usual;
    nn::build_network(options);  // throws where the size is not the cause
    throw UsageError(error.what(),
                     fmt::format("give the usual size of {}: --image-shape {}", options.name, extents(*usual)));
  }
}

nn::Graph choose_graph(const NetworkChoice& choice, const OptionSet& set, DataOptions& data) {
  if (choice.is_file()) {
    nn::Graph graph = choice.is_onnx() ? read_onnx(choice, set, data) : read_graph(choice.options.name, set, data);
    data.image = graph.input();
    data.classes = graph.classes();
    take_smoothing_of_recipe(choice.options, set, graph);
    return graph;
  }
  nn::NetworkOptions options = choice.options;
  options.image = data.image;
  options.classes = data.classes;
  require_classes(options.name, options.classes);
  // The recipe for detectors has a number of regions, and a detector with one stage has none.
  if (!set.chosen("proposals") && !nn::has_proposals(options.name)) options.proposals = 0;
  return build_with_hint(options, set);
}

std::optional<std::string> unusual_image(const NetworkChoice& choice, const OptionSet& set, const nn::Shape& image) {
  const auto usual = usual_image(choice.options.name);
  const Option* const shape = set.find("image-shape");
  if (!usual || !shape || set.chosen("image-shape") || (image.h == usual->h && image.w == usual->w))
    return std::nullopt;
  return fmt::format("{} gets images of {}x{} pixels, as {} has them; its usual ones are --image-shape {}",
                     choice.options.name, image.h, image.w,
                     shape->source == Source::recipe ? "--" + shape->origin : "the default", extents(*usual));
}

static constexpr std::array kOfNetwork = {"network", "num-layers", "backbone",    "proposals",  "anchor-size",
                                          "width",   "batch-norm", "image-shape", "num-classes"};

bool network_is_chosen(const OptionSet& set) {
  return std::ranges::any_of(kOfNetwork, [&](const char* name) { return set.chosen(name); });
}

std::vector<std::string> chosen_network_options(const OptionSet& set) {
  std::vector<std::string> chosen;
  for (const char* const name : kOfNetwork) {
    if (set.chosen(name)) chosen.push_back(fmt::format("--{}", name));
  }
  if (set.chosen("drop-path")) chosen.push_back("--drop-path");
  return chosen;
}

static std::vector<float> drop_shares(const nn::Graph& graph) {
  std::vector<float> shares;
  for (const nn::Node& node : graph.nodes) {
    const auto* const dropout = std::get_if<nn::Dropout>(&node.layer);
    if (dropout && dropout->whole_samples) shares.push_back(dropout->p);
  }
  return shares;
}

std::string difference_of(const nn::Graph& saved, const nn::Graph& mine) {
  const Json saved_json = nn::graph_to_json(saved), my_json = nn::graph_to_json(mine);
  const Json::Array &saved_nodes = saved_json.at("nodes").as_array(), &my_nodes = my_json.at("nodes").as_array();
  if (saved_nodes == my_nodes) return {};
  const std::string saved_images = extents(saved.input()), my_images = extents(mine.input());
  if (saved_images != my_images) return fmt::format("its images are {}, not {}", saved_images, my_images);
  if (saved.classes() != mine.classes())
    return fmt::format("it has {} classes, not {}", saved.classes(), mine.classes());
  if (saved.name == mine.name && drop_shares(saved) != drop_shares(mine))
    return "it was trained with another --drop-path";
  const int saved_anchors = nn::anchor_size(saved), my_anchors = nn::anchor_size(mine);
  if (saved.name == mine.name && saved_anchors != my_anchors)
    return fmt::format("it was trained with --anchor-size {}, not {}", saved_anchors, my_anchors);
  const auto [first, other] = std::ranges::mismatch(saved_nodes, my_nodes);
  if (first == saved_nodes.end() || other == my_nodes.end())
    return fmt::format("it has {} layers, not {}", saved_nodes.size(), my_nodes.size());
  const std::string &saved_name = first->at("name").as_string(), &my_name = other->at("name").as_string();
  if (saved_name == my_name) return fmt::format("its layer {} is another", saved_name);
  return fmt::format("it has the layer {} where they have {}", saved_name, my_name);
}

void require_drop_path(const nn::Graph& saved, float share) {
  std::vector<float> wanted;
  std::optional<nn::NetworkOptions> options = nn::options_of_network(saved);
  if (options) {
    options->drop_path = share;
    wanted = drop_shares(nn::build_network(*options));
  }
  const bool is_known = options || share == 0;
  if (is_known && drop_shares(saved) == wanted) return;
  throw UsageError(fmt::format("--drop-path {}: the checkpoint's {} was built with another share", share, saved.name),
                   "leave --drop-path out to train that network; with --network and --pretrained instead of the "
                   "checkpoint, its weights begin a network of another share");
}

}  // namespace dtrain::config
