// Meshes without a network. The port of its address identifies a worker, and the communicators of a generation are
// those of comm::make_local_world.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/comm/mesh.hpp>

namespace dtrain::elastic {

// Any thread. Must outlive all calls of connect().
class LocalMeshes {
 public:
  std::unique_ptr<comm::Communicator> connect(const comm::MeshPlan& plan, std::chrono::milliseconds deadline,
                                              std::stop_token cancel) {
    std::unique_lock lock(mutex_);
    Meeting& meeting = meetings_[plan.generation];
    if (meeting.world.empty()) meeting.world = comm::make_local_world(static_cast<int>(plan.ranks.size()));
    ++meeting.arrived;
    changed_.notify_all();
    const bool complete =
        changed_.wait_for(lock, cancel, deadline, [&] { return meeting.arrived == plan.ranks.size(); });
    if (!complete) throw PeerLost("a rank did not come to the mesh");
    return std::move(meeting.world[static_cast<std::size_t>(plan.rank)]);
  }

 private:
  struct Meeting {
    std::size_t arrived = 0;
    std::vector<std::unique_ptr<comm::Communicator>> world;
  };
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::uint64_t, Meeting> meetings_;
};

}  // namespace dtrain::elastic
