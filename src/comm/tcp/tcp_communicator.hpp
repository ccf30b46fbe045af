// A communicator over proven connections to all peers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/comm/mesh.hpp>
#include <dtrain/net/stream.hpp>

namespace dtrain::comm::tcp {

// streams[rank] of every peer; that of `rank` itself is none.
std::unique_ptr<Communicator> make_communicator(const MeshPlan& plan, std::vector<net::Stream> streams,
                                                std::chrono::milliseconds operation_deadline,
                                                std::function<void(CommPoint)> on_point);

}  // namespace dtrain::comm::tcp
