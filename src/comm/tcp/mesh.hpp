// The connections to every peer of a generation.
#pragma once

#include <stop_token>
#include <vector>

#include "reception.hpp"

namespace dtrain::comm::tcp {

// [rank], none for this one; one to a rank of this machine. Lower ranks call higher ones, all at the same time, and
// again until they are taken; the caller decides how many connections there are. Throws PeerLost naming the ranks that
// are missing at the deadline, or at once when cancelled; Error where this machine has no thread for it.
std::vector<std::vector<net::Stream>> form_mesh(Reception& reception, const MeshPlan& plan, int connections,
                                                std::chrono::milliseconds deadline, std::stop_token cancel);

}  // namespace dtrain::comm::tcp
