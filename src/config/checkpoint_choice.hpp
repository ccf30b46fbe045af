// The checkpoint that eval, inspect, predict and export are about: PREFIX with --load-epoch, or a file.
#pragma once

#include <optional>

#include <dtrain/train/checkpoint.hpp>

#include "option_set.hpp"

namespace dtrain::config {

constexpr int kBestEpoch = -1;  // instead of a number: that of the best validation

struct CheckpointChoice {
  Path prefix;
  std::optional<int> epoch;
  bool last_weights = false;  // instead of their average, where there is one
};

// Whether files that end so are weights of other programs, which dtrain reads: ".pt".
bool has_foreign_ending(const Path& file);

// For a command that writes the first checkpoint under a prefix that `option` of it gives. Throws UsageError where
// commands that read checkpoints would take the prefix for a file.
void refuse_prefix_of_file(const Path& prefix, const std::string& option);

// --load-epoch, a number or `best`.
void bind_epoch(OptionSet& set, std::optional<int>& epoch, std::string help);
// The number that --load-epoch means. Throws DataError.
int settled_epoch(const Path& prefix, int epoch, const train::SharedStore& store = {});

void bind_checkpoint(OptionSet& set, CheckpointChoice& choice);

// --image-shape, for commands that ask for nothing else about pixels.
inline constexpr const char* kShapeOfMxnet =
    "size of the network's input; needed only for MXNet files, which do not store it";
void bind_shape_of_mxnet(OptionSet& set, std::optional<nn::Shape>& image);

// For commands that use what was trained.
void bind_weights(OptionSet& set, CheckpointChoice& choice);

// load(), without what only training needs, and with the weights that the choice means.
train::Checkpoint load_weights(const CheckpointChoice& choice, std::optional<nn::Shape> image = {});

// `image`: for MXNet's files. Without --load-epoch PREFIX is a .json, .safetensors or .onnx file, or the .params
// beside such a checkpoint; or the newest checkpoint of the prefix is taken, dtrain's own or else MXNet's. Throws
// DataError, UsageError.
train::Checkpoint load(const CheckpointChoice& choice, std::optional<nn::Shape> image = {});

}  // namespace dtrain::config
