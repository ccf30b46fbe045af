// A communicator over proven connections to all peers.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/comm/mesh.hpp>

namespace dtrain::comm::tcp {

// sockets[rank] of every peer; that of `rank` itself is none.
std::unique_ptr<Communicator> make_communicator(const MeshPlan& plan, std::vector<FileDescriptor> sockets,
                                                std::chrono::milliseconds operation_deadline,
                                                std::function<void(CommPoint)> on_point);

}  // namespace dtrain::comm::tcp
