// The worker's side of elastic/protocol.hpp: a Membership that the coordinator's messages drive. The trainer calls it
// from its one thread; another thread pushes messages in. Two threads of the session send heartbeats and build meshes.
//
// The fence: after Frozen{g} or Lost{g} is sent, no apply of generation g can begin. The position that the worker
// reported therefore stays true until the coordinator lets the worker into a later generation.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include <dtrain/comm/mesh.hpp>
#include <dtrain/elastic/membership.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

// The connection to the coordinator. Several threads call send(), one at a time. It must return at once and must not
// call back into the session; after the connection is lost it does nothing.
class ControlLink {
 public:
  virtual ~ControlLink() = default;
  virtual void send(const FromWorker& message) = 0;
};

struct SessionOptions {
  WorkerId worker = 0;  // this worker's id in the members of a Prepare
  std::string fingerprint;
  std::chrono::milliseconds heartbeat{200};
  std::chrono::milliseconds mesh_deadline{10'000};
  bool ask_leave_on_signal = true;  // a stop signal of the process becomes AskLeave
  // What this worker has sent and received, for heartbeats. Called from a thread of the session; an Endpoint's own by
  // default.
  std::function<std::optional<comm::Traffic>()> traffic{};
};

// What a worker's failure means to the job.
struct JobFailure {
  int exit_code = 0;  // Left::job_exit_code
  std::string hint{};
};

// Same contract as comm::Endpoint::connect; called from a thread of the session.
using MeshMaker = std::function<std::unique_ptr<comm::Communicator>(
    const comm::MeshPlan& plan, std::chrono::milliseconds deadline, std::stop_token cancel)>;

class WorkerSession final : public Membership {
 public:
  // Sends Hello. `link` and `endpoint` must outlive this, and `endpoint` every communicator that enter() returned.
  WorkerSession(ControlLink& link, comm::Endpoint& endpoint, SessionOptions options);
  WorkerSession(ControlLink& link, comm::PeerAddress data, MeshMaker make_mesh, SessionOptions options);
  // Aborts the communicator that the trainer may still hold, and joins the threads.
  ~WorkerSession() override;

  // Any thread; both return at once.
  void on_message(const ToWorker& message);
  // The coordinator is lost: enter() answers stop, and all ranks stop together when all have lost it.
  void on_control_lost(const std::string& reason);

  // Any thread: this worker asks to leave the job at the next step.
  void ask_leave(const std::string& reason);
  // Sends the last message. `of_job`: for a failure.
  void leave(Left::How how, const std::string& reason, const JobFailure& of_job = {});

  // The phase is `holding` while it waits.
  void probed(const std::string& hash) override;
  Entry enter(const TrainingPosition& position) override;
  void entered(const TrainingPosition& position) override;
  std::uint64_t vote() override;
  Verdict judge(std::span<const std::uint64_t> votes, bool at_epoch_end) override;
  void require_generation() override;
  void begin_apply() override;
  void end_apply(const TrainingPosition& position) override;
  void lost(const PeerLost& error) override;
  void progress(Phase phase) override;
  void computes(double share) override;
  void report(const Json& event) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dtrain::elastic
