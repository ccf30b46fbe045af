// Options for classifiers, which a detector would pass over in silence.
#pragma once

#include "config/train_options.hpp"

namespace dtrain::config {

// Throws UsageError for one that was chosen, where the options are for a detector.
void refuse_options_of_classifiers(const TrainOptions& options, const OptionSet& set);

}  // namespace dtrain::config
