// Weights behind a URL.
#pragma once

#include <dtrain/train/checkpoint.hpp>

namespace dtrain::train {

// A file of this machine with the weights: `place` itself, or for a URL that ends in #sha256=HEX the copy of that
// content in the user's cache, which is downloaded where it is not there. Throws UsageError for a URL without a hash,
// DataError for other content. `store`: null for one made from the environment.
Path weights_on_this_machine(const Path& place, const SharedStore& store = {});

}  // namespace dtrain::train
