// Machines that EC2 ends as soon as it has started them: for want of a disk or of the right to a key, or because it
// takes a spot instance back. The call that started them does not tell; only their state does.
#pragma once

#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {

// Takes the nodes out of `known` that `now` shows as ended, and returns them with the names that `known` has for them.
std::vector<Node> take_ended(Fleet& known, const Fleet& now);

// Counts a worker that has ended among those that are wanted and there. is_new: this `up` has started it; another base
// worker is one more that is missing; an added one is not for `up` to start.
void count_ended(const Node& node, bool is_new, Launched& launched);

// "w0002 (i-1) has ended: Client.VolumeLimitExceeded: Volume limit exceeded".
std::string ended_text(const Node& node);

}  // namespace dtrain::cluster
