// The start of a training run from pretrained weights.
#pragma once

#include <dtrain/base/reporter.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "config/train_options.hpp"

namespace dtrain::job {

// The beginning of a run on `graph`, the same on every host that has the file. `reporter` gets what fits and what does
// not; null: nothing is reported. `store`: for weights behind a URL; null: one made from the environment.
train::Checkpoint pretrained_start(const config::TrainOptions& options, const nn::Graph& graph, Reporter* reporter,
                                   const train::SharedStore& store = {});

// Has weights behind a URL downloaded, where the run has such; the reporter says where another process does it already.
void fetch_pretrained(const config::TrainOptions& options, Reporter& reporter, const train::SharedStore& store);

}  // namespace dtrain::job
