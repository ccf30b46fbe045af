// Options of progressive resizing: how large the images of training are, and when.
#pragma once

#include "config/train_options.hpp"

namespace dtrain::config {

void bind_progressive(OptionSet& set, train::ProgressiveSizes& sizes);

// Throws UsageError for options that contradict progressive resizing, or that need it.
void check_progressive(const TrainOptions& options, const backend::Backend& backend, const OptionSet& set);

// "images of 112x112 during 50 % of the run, of 224x224 during its last 20 %".
std::string progressive_line(const train::ProgressiveSizes& sizes, const nn::Shape& image);

}  // namespace dtrain::config
