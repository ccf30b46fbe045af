// The disk image that nodes start from.
#pragma once

#include <dtrain/cluster/account.hpp>

namespace dtrain::cluster {

// The newest one of a known name, or the one that has the id. `gpus`: with drivers for them. Throws UsageError: there
// is no such image.
Image find_image(net::AwsCalls& aws, const Spec& spec, bool gpus);

}  // namespace dtrain::cluster
