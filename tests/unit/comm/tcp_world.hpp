// The ranks of a generation as endpoints of this process.
#pragma once

#include <memory>
#include <vector>

#include <dtrain/comm/mesh.hpp>

namespace dtrain::comm {

struct TcpWorld {
  explicit TcpWorld(int ranks, EndpointOptions options = {}, std::uint64_t generation = 1);
  // A rank for each address; ranks with the same one share a host.
  explicit TcpWorld(const std::vector<std::string>& addresses, EndpointOptions options = {});
  // The communicators of another generation over the same endpoints.
  std::vector<std::unique_ptr<Communicator>> connect(std::uint64_t generation);

  std::vector<std::unique_ptr<Endpoint>> endpoints;
  MeshPlan plan;
  std::vector<std::unique_ptr<Communicator>> communicators;
};

}  // namespace dtrain::comm
