// One libssh session over a socket of this program. It never blocks inside libssh: all waiting happens in pump() and
// finish(), under a deadline.
//
// A libssh session belongs to one thread at a time, so there are no locks: the caller of SshSession, or, once a Tunnel
// has taken the connection, the tunnel's thread. Channels must be destroyed before their connection. A failure throws
// RemoteError that begins with the host's name; afterwards is_lost() says whether the connection can be used.
#pragma once

#include <libssh/callbacks.h>
#include <libssh/libssh.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/releaser.hpp>

#include "patience.hpp"

namespace dtrain::net::ssh {

using SessionHandle = std::unique_ptr<ssh_session_struct, Releaser<ssh_free>>;
using EventHandle = std::unique_ptr<ssh_event_struct, Releaser<ssh_event_free>>;
using ChannelHandle = std::unique_ptr<ssh_channel_struct, Releaser<ssh_channel_free>>;
using KeyHandle = std::unique_ptr<ssh_key_struct, Releaser<ssh_key_free>>;

class Connection {
 public:
  // `name` begins every message. Takes the socket, which is non-blocking.
  Connection(std::string name, FileDescriptor socket);
  ~Connection();
  Connection(const Connection&) = delete;

  ssh_session get() const { return session_.get(); }
  const std::string& name() const { return name_; }
  int socket() const { return socket_.get(); }

  // A copy of the socket for libssh, which closes it in ssh_free() once it has begun to connect.
  int lend_socket() const;
  // libssh makes the socket a blocking one when it connects: call this after that.
  void never_block() const;

  // Calls `step` until it says something else than `again`, and returns that. RemoteError when the patience is over
  // before: `what` was being done.
  template <class Step>
  int finish(std::string_view what, int again, const Patience& patience, Step step) {
    for (;;) {
      const int result = step();
      if (result != again) return result;
      wait_for_bytes(what, patience);
    }
  }

  // From here on pump() works.
  void begin_events();
  // Serves the connection until something came or the next look is due: callbacks of channels run in here.
  void pump(const Patience& patience);
  // The same without a wait: for who waits for poll_events() of socket() by other means.
  void pump_now();
  short poll_events() const;
  bool is_lost() const;

  // Bytes that came so far, of whatever kind.
  std::uint64_t received() const { return traffic_.in_bytes; }
  // Asks sshd on the other side for an answer, unless one is awaited already. It shows in received() alone.
  void ask_for_life_sign();
  // From here on it is lost.
  [[noreturn]] void give_up(std::string_view what, std::string hint);

  // What libssh says is the reason.
  [[noreturn]] void fail(std::string_view what, std::string hint = {}) const;
  std::string reason() const;

 private:
  void wait_for_bytes(std::string_view what, const Patience& patience);

  std::string name_;
  FileDescriptor socket_;
  ssh_counter_struct traffic_{};  // the session counts into it
  SessionHandle session_;
  EventHandle event_;
  bool failed_ = false;
};

}  // namespace dtrain::net::ssh
