// The connection of a worker to its agent, and through it to the coordinator: the socket that the worker was started
// with. A loop thread receives frames. mutex_ guards everything that it shares with other threads, and is not held
// while the session handles a message. Frames that arrive before connect() are kept and delivered first. When the
// socket closes, on_control_lost() of the session ends the worker. finish() stops delivery, so the
// session may be destroyed after it; the destructor joins the thread.
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/elastic/session.hpp>
#include <dtrain/net/aws.hpp>
#include <dtrain/net/loop_thread.hpp>

namespace dtrain::job {

// send() may be called from any thread, the other members from the worker's main thread.
class AgentLink final : public elastic::ControlLink {
 public:
  explicit AgentLink(FileDescriptor socket);
  ~AgentLink() override;

  // Waits for the first frame: the assignment of this worker. Throws RemoteError if it does not come in time.
  Json assignment();
  // Delivers messages to the session from now on, those that arrived before first. The session must live until
  // finish().
  void connect(elastic::WorkerSession& session);
  void send(const elastic::FromWorker& message) override;
  // Why the coordinator stops the job; empty: it does not.
  std::string stop_reason();
  // Credentials that the coordinator delegates to this worker, now and later.
  std::shared_ptr<const net::DelegatedCredentials> delegated() const { return delegated_; }
  // Waits for the coordinator's message about credentials. Returns false if it does not come in time.
  bool wait_for_credentials();
  // Waits for a moment until all messages have been sent, then stops receiving and sending.
  void finish();
  // Reports through the session why this worker fails, then finishes. `job`: ok, or the exit code of the whole job,
  // which would fail so again.
  void fail(elastic::WorkerSession& session, const std::exception& error, ExitCode job = ExitCode::ok);

 private:
  void on_frame(std::string frame);
  void on_close(const std::string& reason);
  void deliver(const std::string& frame, elastic::WorkerSession& session);
  bool wait_until(bool (AgentLink::*done)() const, std::chrono::milliseconds patience);
  bool has_assignment() const DTRAIN_REQUIRES(mutex_) { return !frames_.empty() || closed_; }
  bool is_closed() const DTRAIN_REQUIRES(mutex_) { return closed_; }
  bool heard_of_credentials() const DTRAIN_REQUIRES(mutex_) { return heard_of_credentials_ || closed_; }
  void note_stop(const elastic::Stop& message);
  void take(const elastic::UpdateCredentials& message);

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> frames_ DTRAIN_GUARDED_BY(mutex_);  // frames that were not delivered yet
  elastic::WorkerSession* session_ DTRAIN_GUARDED_BY(mutex_) = nullptr;
  bool closed_ DTRAIN_GUARDED_BY(mutex_) = false;
  bool heard_of_credentials_ DTRAIN_GUARDED_BY(mutex_) = false;
  std::string stop_reason_ DTRAIN_GUARDED_BY(mutex_);
  std::string close_reason_ DTRAIN_GUARDED_BY(mutex_);

  const std::shared_ptr<net::DelegatedCredentials> delegated_ = std::make_shared<net::DelegatedCredentials>();
  net::LoopThread thread_;
  std::shared_ptr<net::Channel> channel_;
};

}  // namespace dtrain::job
