// The disk image that nodes start from.
#pragma once

#include <dtrain/cluster/account.hpp>

namespace dtrain::cluster {

// The newest image of a known name, or the image with this id. `gpus`: with drivers for GPUs. Throws UsageError if
// there is no such image.
Image find_image(net::AwsCalls& aws, const Spec& spec, bool gpus);

}  // namespace dtrain::cluster
