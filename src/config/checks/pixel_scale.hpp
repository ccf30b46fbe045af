// The scale of the pixels that a network learns from.
#pragma once

#include <optional>
#include <string>

#include <dtrain/nn/graph.hpp>

#include "config/train_options.hpp"

namespace dtrain::config {

// What to warn of before a run from random weights: a network without a layer that normalises gets pixels as they are,
// since MXNet's default of --rgb-std, which stays, divides them by 1. nullopt: nothing.
std::optional<std::string> undivided_pixels(const nn::Graph& graph, const OptionSet& set, const TrainOptions& options);
// What to warn of before a run that fills rectangles with noise: it has a deviation of 1, which is a grey rectangle
// beside pixels that nothing divides. nullopt: nothing.
std::optional<std::string> faint_erasing(const TrainOptions& options);

}  // namespace dtrain::config
