// The options of MXNet's image-classification scripts (common/fit.py, common/data.py) that dtrain does not have under
// the same name and with the same meaning.
#pragma once

#include "option_set.hpp"

namespace dtrain::config {

// The set has all other options of `dtrain train` already.
void bind_mxnet(OptionSet& set);

}  // namespace dtrain::config
