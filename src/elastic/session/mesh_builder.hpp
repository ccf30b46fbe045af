// Builds the mesh of the newest generation that was asked for, on a thread of its own.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <dtrain/elastic/session.hpp>

namespace dtrain::elastic {

class MeshBuilder {
 public:
  // Called on the builder's thread: the communicator, or why there is none.
  using Done =
      std::function<void(Generation generation, std::unique_ptr<comm::Communicator> mesh, const std::string& failure)>;

  MeshBuilder(MeshMaker make_mesh, std::chrono::milliseconds deadline, Done done);
  ~MeshBuilder();  // cancels, and waits for a call of `done` in progress

  // Cancels what is under way; of that nothing is told.
  void build(comm::MeshPlan plan);
  void cancel_through(Generation generation);

 private:
  void run(std::stop_token stop);
  void build_one(const comm::MeshPlan& plan, std::stop_token cancel);

  const MeshMaker make_mesh_;
  const std::chrono::milliseconds deadline_;
  const Done done_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  std::optional<comm::MeshPlan> wanted_;
  Generation under_way_ = 0;  // 0: none
  std::stop_source cancel_;   // of what is under way
  std::jthread thread_;       // last: it uses all of the above
};

}  // namespace dtrain::elastic
