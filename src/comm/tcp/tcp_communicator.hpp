// A communicator over proven connections to all peers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/comm/mesh.hpp>
#include <dtrain/net/stream.hpp>

#include "link.hpp"

namespace dtrain::comm::tcp {

// What passes is added to `traffic`. streams[rank]: the connections to it, as form_mesh() gives them.
// `by_shared_memory`: peers of this machine read large frames where they lie.
std::unique_ptr<Communicator> make_communicator(const MeshPlan& plan, std::vector<std::vector<net::Stream>> streams,
                                                std::chrono::milliseconds operation_deadline,
                                                std::function<void(CommPoint)> on_point,
                                                std::shared_ptr<TrafficCount> traffic, bool by_shared_memory);

}  // namespace dtrain::comm::tcp
