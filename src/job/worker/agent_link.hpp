// A worker's way to its agent, and through it to the coordinator: the socket that it was started with.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <dtrain/elastic/session.hpp>
#include <dtrain/net/aws.hpp>
#include <dtrain/net/loop_thread.hpp>

namespace dtrain::job {

// send() from any thread, the rest from the worker's main thread.
class AgentLink final : public elastic::ControlLink {
 public:
  explicit AgentLink(FileDescriptor socket);
  ~AgentLink() override;

  // The first frame: what this worker is and what it trains. Throws RemoteError when it does not come in time.
  Json assignment();
  // From now on messages go to the session, those that came before first. Until finish() it must live.
  void connect(elastic::WorkerSession& session);
  void send(const elastic::FromWorker& message) override;
  // What the coordinator lends this worker, now and later.
  std::shared_ptr<const net::LentCredentials> lent() const { return lent_; }
  // Waits until it said whether it lends any. False: it did not in time.
  bool wait_for_loan();
  // Waits a little until all that was sent has left, then hears and says nothing any more.
  void finish();

 private:
  void on_frame(std::string frame);
  void on_close(const std::string& reason);
  void deliver(const std::string& frame);
  bool wait_until(bool (AgentLink::*done)() const, std::chrono::milliseconds patience);
  bool has_assignment() const { return !frames_.empty() || closed_; }
  bool is_closed() const { return closed_; }
  bool heard_of_loan() const { return heard_of_loan_ || closed_; }
  void take(const elastic::Lend& loan);

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<std::string> frames_;  // that nobody took yet
  elastic::WorkerSession* session_ = nullptr;
  bool closed_ = false, heard_of_loan_ = false;
  std::string close_reason_;

  const std::shared_ptr<net::LentCredentials> lent_ = std::make_shared<net::LentCredentials>();
  net::LoopThread thread_;
  std::shared_ptr<net::Channel> channel_;
};

}  // namespace dtrain::job
