// How much of a picture the network sees.
#pragma once

#include <optional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/nn/graph.hpp>

#include "config/train_options.hpp"

namespace dtrain::config {

// Whether windows of the input's size show but a small part of pictures with this shorter edge.
bool is_far_larger(int shorter_edge, const nn::Shape& input);
// The options by which training and evaluation see most of each picture: "--resize 256 --random-resized-crop 1".
std::string options_for_large_pictures(const nn::Shape& input);

// What to warn of before a classifier begins to learn from `records`: without --resize it is evaluated on windows of
// the pictures as they are stored, and trained on such windows, too, without --random-resized-crop. nullopt: nothing,
// or the pictures are not on this machine.
std::optional<std::string> small_windows(const Path& records, const OptionSet& set, const TrainOptions& options);

}  // namespace dtrain::config
