// Framed messages between two parties that prove to each other that they know a shared secret, and the loop they are
// served on. Frames are opaque bytes of at most kMaxFrame; an unauthenticated peer gets only a closed connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::net {

constexpr std::size_t kMaxFrame = 16 << 20;
// A peer that leaves so much unread is given up: its channel closes.
constexpr std::size_t kMaxUnsent = 64 << 20;

// One thread runs it; all callbacks come from that thread, and what they throw leaves run(). The other members may be
// called from any thread. Channels and listeners may outlive it, but do nothing then; no thread may be using them while
// it is destroyed.
class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  void run();  // until stop(), also when that came first
  void stop();
  void post(std::function<void()> work);
  void after(std::chrono::milliseconds delay, std::function<void()> work);
  // Calls `work` each time the descriptor (a pipe, a socket, a pidfd) can be read or has ended, until it returns false.
  // Watches a copy of its own: the caller may close its descriptor at any time, but only `false` ends the watch.
  void when_readable(int descriptor, std::function<bool()> work);

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// The purpose of control connections. Other ports have other ones: a proof for one purpose is none for another.
inline constexpr const char* kControlPurpose = "control";

// A proven connection. Members may be called from any thread; destroying the last owner closes it without on_close, and
// no callback begins after that when it happens on the loop's thread.
class Channel {
 public:
  struct Events {
    std::function<void(std::string frame)> on_frame;
    std::function<void(std::string reason)> on_close;  // once; nothing comes after it
  };
  virtual ~Channel() = default;
  virtual void listen(Events events) = 0;    // call once; frames that came earlier are kept until then
  virtual void send(std::string frame) = 0;  // queued; after on_close it does nothing
  // Sends what is queued, says that nothing follows, and waits a little for the peer to close; then on_close. Nothing
  // more is received. Goes on when the last owner is destroyed.
  virtual void close_after_sending() = 0;
  virtual std::size_t unsent() const = 0;         // bytes queued here, not yet taken by the kernel
  virtual std::string local_address() const = 0;  // numeric: what the peer really reached; empty for a socketpair
  virtual std::string peer_address() const = 0;   // numeric
  virtual std::uint16_t peer_port() const = 0;
};

struct ListenerOptions {
  std::uint16_t port = 0;  // 0: any free one
  std::string purpose = kControlPurpose;
};

// Accepts on a port of bind_address (numeric; kAnyAddress: IPv4 and IPv6). on_channel gets only connections that proved
// the secret within 10 s. At most 256 others are open at a time; where more come, silent ones are closed first. Throws
// Error when the address cannot be bound.
class Listener {
 public:
  Listener(Loop& loop, const std::string& bind_address, std::string secret,
           std::function<void(std::shared_ptr<Channel>)> on_channel, const ListenerOptions& options = {});
  ~Listener();
  Listener(const Listener&) = delete;
  std::string address() const;
  std::uint16_t port() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

struct ConnectOptions {
  std::string purpose = kControlPurpose;
  bool from_privileged_port = false;  // from a port below 1024, which shows that root connects; IPv4 only
};

// Blocks. Throws RemoteError if no peer answers and proves the secret within the deadline. `address` is numeric.
std::shared_ptr<Channel> connect_channel(Loop& loop, const std::string& address, std::uint16_t port,
                                         const std::string& secret, std::chrono::milliseconds deadline,
                                         const ConnectOptions& options = {});
// Connects, sends one frame, and returns the first one that comes back. Blocks. Throws RemoteError as
// connect_channel(), and if the peer sends no frame within the deadline.
std::string ask_channel(const std::string& address, std::uint16_t port, const std::string& secret,
                        const std::string& question, std::chrono::milliseconds deadline,
                        const ConnectOptions& options = {});
// An inherited socket whose other end is trusted (a socketpair with the parent process): frames without proof. Programs
// that this process executes do not get it.
std::shared_ptr<Channel> adopt_channel(Loop& loop, FileDescriptor socket);

}  // namespace dtrain::net
