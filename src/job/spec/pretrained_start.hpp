// The start of a training run from pretrained weights.
#pragma once

#include <dtrain/base/reporter.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "config/train_options.hpp"

namespace dtrain::job {

// Fills the options of images and classes that the user did not choose: images as the weights expect them, as many
// classes as the training records name.
void suit_pretrained(const config::OptionSet& set, const train::SharedStore& store, config::TrainOptions& options);

// The beginning of a run on `graph`, the same on every host that has the file. `reporter` gets what fits and what does
// not; null: nothing is reported.
train::Checkpoint pretrained_start(const config::TrainOptions& options, const nn::Graph& graph, Reporter* reporter);

}  // namespace dtrain::job
