// --finetune: the options that weights and pictures choose.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "config/train_options.hpp"

namespace dtrain::job {

// Sets the options that the user did not choose, as a recipe does, and reports them. `set` is bound to `options`, which
// --finetune is one of. Throws UsageError, DataError.
void choose_finetuning(config::TrainOptions& options, config::OptionSet& set, Reporter& reporter);

}  // namespace dtrain::job
