// How many processors this process may use.
#pragma once

namespace dtrain::cli {

// The smaller of the affinity mask and the control group's quota; at least 1.
int usable_cpus();

}  // namespace dtrain::cli
