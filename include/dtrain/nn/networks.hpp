// Networks by name, with the parameter names, shapes and defaults of MXNet's image-classification symbols; resnet-v1.5
// and those under torchvision's own names with torchvision's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

struct NetworkOptions {
  std::string name = "resnet";  // one of network_names()
  // 0: resnet-v1.5 50; the other resnets 110 up to 32 pixels of height, else 50; vgg 16. The others have one depth: 0
  int num_layers = 0;
  Shape image{3, 28, 28};
  int classes = 10;
  // resnets: channels that each stage doubles (0: 16 up to 32 pixels of height, else 64; torchvision's 64).
  // speednet: channels of its first group (0: 64); the others have four times as many.
  int width = 0;
  float label_smoothing = 0.0f;
  bool batch_norm = false;  // vgg only
  // convnext, vit and efficientnet: the probability that training leaves out the last residual block of a sample; it
  // grows from block to block, from 0 on.
  float drop_path = 0.0f;
  std::string backbone = {};  // of detectors: one of backbone_names(); empty: resnet-50
  int proposals = 0;          // of two-stage detectors: regions of a picture that are looked into; 0: 512
  int anchor_size = 0;        // of detectors: size of the smallest anchors in pixels of the image; 0: 32
};

// Throws UsageError: an unknown name with the nearest known one, a depth with the list of those that exist, an option
// that the network does not have, an image that is too small (naming the layer that it does not fit), one of a detector
// whose sides kDetectorStride does not divide. Image height <= 32 selects the CIFAR resnets: (n-2)/6 basic blocks a
// stage below 164, (n-2)/9 bottlenecks from there on (He et al. 2016). MXNet's scripts do the same up to 28; at 29 to
// 32 they would put ImageNet's stages on a CIFAR stem. resnet-v1.5 has ImageNet's stages at every height.
Graph build_network(const NetworkOptions& options);

// In the order in which help and messages list them.
std::vector<std::string> network_names();
// Detectors, and what they take as their backbone.
std::vector<std::string> detector_names();
bool is_detector(const std::string& name);
bool has_proposals(const std::string& name);  // of a detector with two stages
std::vector<std::string> backbone_names();
// What height and width of a detector's images are multiples of: the stride of the coarsest level of its backbone. With
// other sides the anchors would drift away from their pixels.
inline constexpr int kDetectorStride = 32;
// In front of the names of a detector's nodes that its backbone, as a classifier, has as well.
inline constexpr std::string_view kBackbonePrefix = "backbone.body.";
// Those of the others under torchvision's names, and the rest.
std::vector<std::string> torch_network_names();
std::vector<std::string> own_network_names();

// What build_network() makes a graph with these tensors of, by its name; nullopt for a graph of another kind. The sides
// of a detector's image are rounded up to multiples of kDetectorStride, which checkpoints of older releases need not
// have.
std::optional<NetworkOptions> options_of_network(const Graph& graph);

// How weights that others trained on ImageNet want their images: the centre of so many pixels of one whose shorter edge
// has `resize`, less ImageNet's mean and divided by its deviation, or from -1 to 1.
struct PretrainedImages {
  int size = 224, resize = 256;
  bool symmetric = false;
};
// Those of torchvision's weights; for a detector those of the recipe `detection`, and the default for what is no
// network's name.
PretrainedImages pretrained_images(const std::string& network);
// Whether a network of this name is torchvision's, timm's or a detector, so that its weights of unknown origin are most
// likely of ImageNet. The others are those of MXNet's scripts, for images of any kind.
bool is_published(const std::string& network);
// Whether the network was made for images such as those of MNIST and CIFAR-10.
bool is_for_small_images(const std::string& network);

}  // namespace dtrain::nn
