// The thread that moves a communicator's frames, one operation at a time, and the one place where a communicator dies.
//
// Threads: the communicator's thread begins an operation and waits in end(); one thread of the exchange owns links,
// operation and epoll, and only it reads or writes sockets. Other threads reach it through post() and abort(), which
// wake it by an eventfd.
// Locks: mutex_ guards the state that both sides share, and is never held during I/O or during an operation's work.
// Lifetime: an operation and its memory must outlive end() or abandon(): both return when the thread has let go of it.
// Failure: an exception in a turn (lost peer, damaged frame, deadline, abort) ends in die(): the peers get the reason
// in a last frame, all connections close, the operation ends, and every later call throws PeerLost with that reason.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/comm/mesh.hpp>

#include "link.hpp"
#include "operation.hpp"

namespace dtrain::comm::tcp {

class Exchange final : public Wire, private FrameSink {
 public:
  // links[peer]: the connections to it, the first one first; none to `rank` itself.
  Exchange(int rank, std::vector<std::vector<Link>> links, std::chrono::milliseconds deadline,
           std::function<void(CommPoint)> on_point);
  ~Exchange() override;

  // From the communicator's thread. begin() hands over an operation, which must stay until end() returned or threw
  // PeerLost: complete, and its frames gone; or dead. The deadline of end() runs from its call.
  void begin(Operation& operation);
  void end();
  void abandon() noexcept;  // instead of end(): the communicator is dead
  void run(Operation& operation) {
    begin(operation);
    end();
  }

  // From any thread.
  void post(std::function<void()> work);  // runs on the exchange's thread, unless it is dead
  void abort() noexcept;

  // On the exchange's thread: for operations.
  void send(int peer, Outgoing frame) override;
  void give_back(int peer) override { send(peer, {.header = {.kind = FrameKind::taken}}); }
  void reach(CommPoint point) const override {
    if (on_point_) on_point_(point);
  }
  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(links_.size()); }
  const std::string& name_of(int peer) const override { return links_to(peer).front().name(); }

 private:
  std::optional<std::span<std::byte>> place(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header) override;
  bool borrow(int peer, const FrameHeader& header, const std::byte* bytes) override;
  void gone(const FrameHeader& header) override;
  void before_write() override { reach(CommPoint::before_send); }

  std::vector<Link>& links_to(int peer) { return links_[static_cast<std::size_t>(peer)]; }
  const std::vector<Link>& links_to(int peer) const { return links_[static_cast<std::size_t>(peer)]; }
  void serve();
  void turn();
  bool run_posted();
  bool move_frames();
  void look_for_ends();
  void finish_if_complete();
  void sleep();
  void wake() noexcept;
  void die(const std::string& reason) noexcept;
  void require_alive() const DTRAIN_REQUIRES(mutex_);

  const int rank_;
  const std::chrono::milliseconds deadline_;
  const std::function<void(CommPoint)> on_point_;

  // The thread's own.
  std::vector<std::vector<Link>> links_;
  Operation* operation_ = nullptr;
  std::size_t queued_ = 0;  // frames
  FileDescriptor epoll_, wake_;

  std::atomic<bool> aborted_{false};
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::function<void()>> posted_ DTRAIN_GUARDED_BY(mutex_);
  bool busy_ DTRAIN_GUARDED_BY(mutex_) = false;     // an operation was begun and has neither finished nor died
  bool leaving_ DTRAIN_GUARDED_BY(mutex_) = false;  // the thread shall end
  std::string death_ DTRAIN_GUARDED_BY(mutex_);     // why; empty: alive
  std::thread thread_;
};

}  // namespace dtrain::comm::tcp
