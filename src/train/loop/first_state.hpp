// What a run starts with when no checkpoint is given.
#pragma once

#include <dtrain/train/trainer.hpp>

namespace dtrain::train {

// A pure function of graph, options and training data, so that every rank computes the same. Whitening looks at the
// first samples of epoch 0 as training sees them; `training` is then to be started anew.
backend::ModelState first_state(const nn::Graph& graph, const TrainerOptions& options, data::Loader& training);

}  // namespace dtrain::train
