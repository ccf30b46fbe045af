// Bytes over a connected socket, under TLS 1.3 (RFC 8446) or plain. TLS takes the job's secret as an external
// pre-shared key (RFC 8446 2.2, RFC 9257) beside an ephemeral X25519 exchange: only the holders of the secret can
// open, read or change a connection, and a recorded one stays closed to those who learn the secret later. There are no
// certificates and no session tickets. Each direction of each connection has its own AES-128-GCM key, which TLS changes
// long before the limit on its use.
//
// Threads: one at a time. Nothing blocks, except the functions that take a deadline.
#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain::net {

enum class Role { connected, accepted };

// What both ends of a connection must have in common. The TLS key is derived from both parts, so a connection cannot be
// passed off as one of another purpose. Purposes are public.
struct StreamKey {
  std::string secret, purpose;
};

// What one call did at a socket.
struct Moved {
  enum class State {
    open,     // another call may move more
    blocked,  // nothing moves until the socket can be read or written
    ended,    // the peer has closed the connection, or its process is gone
    broken,   // nothing moves any more; `error` says why
  };
  std::size_t bytes = 0;
  State state = State::open;
  std::string error{};
};

// How long a TLS stream keeps a key.
struct StreamLimits {
  // AES-GCM stays safe for 2^24.5 full records of one key (RFC 8446 5.5). A quarter of that is 64 GiB.
  std::uint64_t records_of_one_key = 1 << 22;
};

class BulkRecords;

class Stream {
 public:
  Stream();
  ~Stream();
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  // Takes a connected socket whose other end is trusted; it moves plain bytes.
  explicit Stream(FileDescriptor socket);
  // TLS, before its handshake. Throws UsageError when the secret is empty.
  Stream(FileDescriptor socket, Role role, const StreamKey& key, const StreamLimits& limits = {});

  int socket() const { return socket_.get(); }
  explicit operator bool() const { return bool(socket_); }
  bool is_encrypted() const;

  enum class Handshake { done, wants_read, wants_write };
  // Goes on with the handshake. `done`: the peer has the secret. Throws RemoteError when it has not.
  Handshake shake_hands();
  // Whether this end has replied to the peer's first message of the handshake. The accepting end does so only if that
  // message was made with the secret.
  bool has_answered() const;
  // Both ends call it after the same byte in each direction: what follows is plain.
  void continue_plain();

  // The same, but what follows is encrypted, at a lower cost than by TLS itself (src/net/tls/bulk.hpp).
  void continue_in_bulk();

  // Up to the size of all parts, in order.
  Moved read(std::span<const iovec> parts);
  // Takes bytes over, perhaps only a part. Under TLS some may be encrypted and not sent yet: see unsent().
  Moved write(std::span<const iovec> parts);
  // Sends what was taken over before.
  Moved flush();
  std::size_t unsent() const;
  // Nothing follows in this direction.
  void end_writing();

 private:
  struct Tls;
  FileDescriptor socket_;
  std::unique_ptr<Tls> tls_;           // until the handshake is done, or longer
  std::unique_ptr<BulkRecords> bulk_;  // neither: plain
};

// ---- for callers that wait; each throws RemoteError when the deadline has passed or the connection ends

using StreamClock = std::chrono::steady_clock;
void shake_hands(Stream& stream, StreamClock::time_point deadline);
void write_all(Stream& stream, std::string_view bytes, StreamClock::time_point deadline);
std::string read_exactly(Stream& stream, std::size_t size, StreamClock::time_point deadline);

// Whether the process at the other end of a Unix socket runs as the same user (SO_PEERCRED).
bool is_same_user(int unix_socket);

}  // namespace dtrain::net
