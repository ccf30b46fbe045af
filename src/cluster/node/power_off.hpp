// Turns this machine off. An instance of a cluster ends by that, and so does what it costs.
#pragma once

namespace dtrain::cluster {

// For root. Returns at once; the machine ends this process like all others. Throws Error if no shell can be started.
void power_off_machine();

}  // namespace dtrain::cluster
