// The socket behind a Channel: reads frames, writes a bounded queue.
//
// Threads: everything runs on the loop's thread, without locks, except send(), unsent() and on_loop(), which any thread
// may call: they post work to the loop, and count unsent bytes in an atomic.
// Life time: the loop owns its open connections (Loop::State::connections). A caller's handle holds a weak pointer, so
// a handle may outlive the loop, and then does nothing. A connection leaves the loop's set when it has closed and its
// owner has been informed by on_close or has gone; pending socket operations keep it alive until they are cancelled.
// Failure: a broken connection, a malformed frame, and a peer that leaves more than kMaxUnsent bytes unread all end in
// close(), which calls on_close once with the reason. Without a listener the reason is kept until listen().
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <asio/dispatch.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>

#include <dtrain/net/stream.hpp>

#include "frames.hpp"
#include "loop_state.hpp"

namespace dtrain::net {

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // Throws Error when the loop cannot watch the stream's socket.
  Connection(Loop::State& loop, Stream stream);
  ~Connection();

  // Any thread.
  void send(std::string frame);
  std::size_t unsent() const { return unsent_; }
  template <typename Work>
  void on_loop(Work work) {
    if (loop_.ending) return;
    asio::dispatch(loop_.context, [self = shared_from_this(), work = std::move(work)]() mutable { work(*self); });
  }

  void keep() { loop_.connections.insert(shared_from_this()); }
  void listen(Channel::Events events);
  void finish();   // close_after_sending()
  void abandon();  // the last owner is gone

 private:
  void queue(std::string bytes);
  void write_queued();
  void wait_to_write();
  Moved write_some();
  void read_some();
  void wait_to_read();
  void deliver_frames();
  std::optional<std::string> next_frame();
  void say_that_nothing_follows();
  void close(const std::string& reason);
  void close_later(const std::string& reason);

  Loop::State& loop_;
  Stream stream_;
  asio::posix::stream_descriptor watch_;     // lends the stream's socket, released before the stream goes
  std::shared_ptr<Channel::Events> events_;  // null before listen() and after the end
  FrameReader frames_;
  std::array<char, 16 << 10> chunk_;
  std::deque<std::string> queued_;
  std::size_t front_sent_ = 0;  // of the first
  std::atomic<std::size_t> unsent_{0};
  bool reading_ = false, waiting_to_write_ = false, finishing_ = false, abandoned_ = false;
  std::optional<std::string> ended_;  // why
};

// A channel over a stream whose peer is proven. Any thread. Throws Error when the loop cannot serve the socket.
std::shared_ptr<Channel> make_channel(Loop::State& loop, Stream stream);

}  // namespace dtrain::net
