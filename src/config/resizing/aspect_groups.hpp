// The option of groups of pictures: to which sizes a detector's pictures are padded.
#pragma once

#include "config/train_options.hpp"

namespace dtrain::config {

void bind_aspect_groups(OptionSet& set, DataOptions& options);

// "320x448,448x320", height first; empty: none. Reading throws UsageError.
std::vector<data::ScaledSize> aspect_groups_from(const std::string& text);
std::string aspect_groups_text(const std::vector<data::ScaledSize>& groups);

// Where the user gave no size of the input, the one that holds every group.
void settle_aspect_groups(const OptionSet& set, DataOptions& options);
// Throws UsageError for a network, a device, an input and options that do without groups.
void check_aspect_groups(const TrainOptions& options, const backend::Backend& backend);

// The same sizes as shapes of images.
std::vector<nn::Shape> group_shapes(const DataOptions& options);
// Whether a checkpoint's pictures are computed in its groups: where it has some, and the backend can, as they were in
// training, and with less work. Another backend computes each picture in the whole input: at the same scale, but with
// more zeros around it, which pass through biases and norms and get anchors of their own. So boxes and scores differ
// between the two, a little.
bool computes_in_groups(const DataOptions& options, const backend::Backend& backend);
// What evaluates a checkpoint of the graph.
std::unique_ptr<backend::Executable> compile_evaluation(const backend::Backend& backend, const nn::Graph& graph,
                                                        backend::CompileOptions compile, const DataOptions& options);
// "each step has pictures of one size: 320x448 or 448x320".
std::string aspect_groups_line(const DataOptions& options);

}  // namespace dtrain::config
