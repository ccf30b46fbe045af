// Builds the mesh of the newest requested generation on a thread of its own.
//
// The thread takes the newest plan under mutex_, and connects and calls `done` without it. build() and cancel_through()
// may come from any thread and never wait for the network. A cancelled build reports nothing; a failed one reports its
// reason. The destructor cancels and joins, so `done` is never called after it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <dtrain/base/mutex.hpp>
#include <dtrain/elastic/session.hpp>

namespace dtrain::elastic {

class MeshBuilder {
 public:
  struct Result {
    std::unique_ptr<comm::Communicator> mesh;  // null: there is none
    std::string failure{};                     // why
    bool is_local = false;                     // the failure is that of this machine, not of a peer
  };
  // Called on the builder's thread.
  using Done = std::function<void(Generation generation, Result result)>;

  MeshBuilder(MeshMaker make_mesh, std::chrono::milliseconds deadline, Done done);
  ~MeshBuilder();  // cancels, and waits for a call of `done` in progress

  // Cancels a build in progress, which then reports nothing.
  void build(comm::MeshPlan plan) DTRAIN_EXCLUDES(mutex_);
  void cancel_through(Generation generation) DTRAIN_EXCLUDES(mutex_);

 private:
  void run(std::stop_token stop);
  void build_one(const comm::MeshPlan& plan, std::stop_token cancel);

  const MeshMaker make_mesh_;
  const std::chrono::milliseconds deadline_;
  const Done done_;
  Mutex mutex_;
  StoppableCondVar changed_;
  std::optional<comm::MeshPlan> wanted_ DTRAIN_GUARDED_BY(mutex_);
  Generation under_way_ DTRAIN_GUARDED_BY(mutex_) = 0;  // 0: none
  std::stop_source cancel_ DTRAIN_GUARDED_BY(mutex_);   // of the build in progress
  std::jthread thread_;                                 // last: it uses all of the above
};

}  // namespace dtrain::elastic
