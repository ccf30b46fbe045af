// The worker's side of elastic/protocol.hpp: a Membership that the coordinator's messages drive. The trainer calls it
// from its one thread; messages are pushed in from another. Two threads of its own send heartbeats and build meshes.
//
// The fence: once Frozen{g} or Lost{g} was sent, no apply of generation g can begin, whatever the trainer is doing. So
// what the coordinator was told about this worker's state stays true until it lets the worker into a later generation.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include <dtrain/comm/mesh.hpp>
#include <dtrain/elastic/membership.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

// The way to the coordinator. send() comes from several threads, one at a time; it must return at once, must not call
// back into the session, and does nothing once the way is gone.
class ControlLink {
 public:
  virtual ~ControlLink() = default;
  virtual void send(const FromWorker& message) = 0;
};

struct SessionOptions {
  WorkerId worker = 0;  // what the members of a Prepare call this worker
  std::string fingerprint;
  std::chrono::milliseconds heartbeat{200};
  std::chrono::milliseconds mesh_deadline{10'000};
  bool ask_leave_on_signal = true;  // a stop signal of the process becomes AskLeave
};

// As comm::Endpoint::connect; called from a thread of the session.
using MeshMaker = std::function<std::unique_ptr<comm::Communicator>(
    const comm::MeshPlan& plan, std::chrono::milliseconds deadline, std::stop_token cancel)>;

class WorkerSession final : public Membership {
 public:
  // Sends Hello. `link` and `endpoint` must outlive this; communicators that it gave must not outlive `endpoint`.
  WorkerSession(ControlLink& link, comm::Endpoint& endpoint, SessionOptions options);
  WorkerSession(ControlLink& link, comm::PeerAddress data, MeshMaker make_mesh, SessionOptions options);
  // Aborts what the trainer may still hold, and joins its threads.
  ~WorkerSession() override;

  // Any thread; both return at once.
  void on_message(const ToWorker& message);
  // The coordinator cannot be reached any more: enter() answers stop, and all ranks stop together once all know it.
  void on_control_lost(const std::string& reason);

  // Any thread: this worker would like to leave the job at the next step.
  void ask_leave(const std::string& reason);
  // The last message. Nothing is sent after it.
  void leave(Left::How how, const std::string& reason, int job_exit_code = 0);

  // Phase: `holding` while it waits.
  void probed(const std::string& hash) override;
  Entry enter(const Standing& standing) override;
  void entered(const Standing& standing) override;
  std::uint64_t vote() override;
  Verdict judge(std::span<const std::uint64_t> votes, bool at_epoch_end) override;
  void begin_apply() override;
  void end_apply(const Standing& standing) override;
  void lost(const PeerLost& error) override;
  void progress(Phase phase) override;
  void report(const Json& event) override;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::elastic
