// The weights of another run or program that a network begins with, and the pixels that they expect.
#pragma once

#include <optional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "data_options.hpp"
#include "option_set.hpp"

namespace dtrain::config {

struct Pretrained {
  std::optional<Path> file;
  std::optional<Path> finetune;  // the same file, and the options are chosen by it
  bool new_head = false;
  std::string freeze;  // see nn::freeze; empty: as the checkpoint has it, else nothing
};

void bind_pretrained(OptionSet& set, Pretrained& pretrained);

// Fills what the user did not choose: size, mean, deviation and resizing of images as dtrain stored them in the file,
// else as torchvision's weights of the network for ImageNet want them. MXNet's files, and files for networks that are
// not nn::is_published(), leave the options as they are, but for the size, which is ImageNet's where the network is not
// nn::is_for_small_images(). A detector takes the size of another detector's images alone.
// Returns whether the file says how its pixels are prepared. Throws DataError for a file that cannot be read.
bool suit_weights(const Path& file, const std::string& network, const OptionSet& set, DataOptions& data);

// Says how the pixels of a file that does not say so are prepared, by the settled options, unless the user chose all.
void note_assumed_pixels(const Path& file, const OptionSet& set, const DataOptions& data, Reporter& reporter);

// A detector that dtrain trained with other anchors than the usual ones is no good with these, and no tensor shows it.
// Throws as above.
void suit_anchors(const Path& file, const OptionSet& set, nn::NetworkOptions& network);

// The depth, the width and the like that the user did not choose, where dtrain wrote the file for a network of this
// name. Throws as above.
void suit_network_options(const Path& file, const OptionSet& set, nn::NetworkOptions& network);

// "--image-shape 3,28,28 --rgb-mean 0,0,0 --rgb-std 58,58,58", and --resize where images are resized.
std::string pixels_text(const DataOptions& data);

// The pixels of a trained network: its image, and what its checkpoint says about mean, deviation, resizing and views.
// An ONNX model of another program says nothing: it gets ImageNet's. MXNet's files say nothing either: they get those
// of the options. The reporter says so. Throws UsageError for a choice of the user's that the network does not take,
// and DataError for a network that takes no pictures.
void take_pixels(const train::Checkpoint& checkpoint, const Path& file, const OptionSet& set, DataOptions& data,
                 Reporter& reporter);

// Throws UsageError where the user chose another size than the network has.
void require_image_of(const train::Checkpoint& checkpoint, const std::optional<nn::Shape>& chosen);

}  // namespace dtrain::config
