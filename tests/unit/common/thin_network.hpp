// A network with the layers of a real one and few channels, so that plain loops are done with it soon. For tests only.
#pragma once

#include <dtrain/nn/networks.hpp>

namespace dtrain::testing {

// A detector whose convolutions have a `by`-th of the channels, but for those that its heads end with. Its backbone's
// norms stay as they are, as where it learns from weights that are there.
nn::Graph thin_detector(const nn::NetworkOptions& options, int by);

}  // namespace dtrain::testing
