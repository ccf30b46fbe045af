// The listening port of an endpoint, and the Unix socket beside it. A caller has to prove the job's token and
// say which rank of which generation it is; then its connection waits here until the generation's mesh asks for it.
//
// 1. Both make a TLS 1.3 handshake with the job's token.
// 2. The caller sends one byte, a size, and its hello of that size:
//    "generation rank ranks rank-called plain|encrypted number connections".
// 3. The reception answers kTaken or kOver.
// 4. Both send frames: as plain bytes by Unix sockets and where both say "plain", else in records of net/tls/bulk.hpp.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/net/connection_quota.hpp>
#include <dtrain/net/stream.hpp>

#include "sockets.hpp"

namespace dtrain::comm::tcp {

// What a connecting rank says of itself and of whom it calls.
struct Caller {
  std::uint64_t generation = 0;
  int rank = 0;    // of the caller
  int ranks = 0;   // of the generation
  int called = 0;  // the rank that it calls: a call that was led to another one is not taken
  bool plain = false;
  int number = 0;  // of the connection
  int connections = 1;
};
std::string hello_of(const Caller& caller);
std::optional<Caller> caller_of(const std::string& hello);

constexpr const char* kDataPurpose = "data";

// Longer than any honest peer takes to prove itself, even on a busy machine.
constexpr std::chrono::milliseconds kProofDeadline(3000);

// The byte that a proven caller gets: its connection was taken into the mesh, or its generation is over.
constexpr char kTaken = 'T', kOver = 'O';

// All members may be called from any thread.
class Reception {
 public:
  Reception(const std::string& bind_address, const std::string& secret, bool near, bool plain);
  ~Reception();
  const PeerAddress& address() const { return address_; }
  const net::StreamKey& key() const { return key_; }
  bool is_plain() const { return plain_; }  // between machines

  // From now on callers of this generation are kept, and those of older ones that no call awaits are soon closed.
  void await(std::uint64_t generation);
  void forget(std::uint64_t generation);  // ends await(); connections that were not taken are closed
  // Waits for the connections from each rank below `below`: as many as it says. Gives what came by the deadline, or
  // before `cancelled`; none from a rank of which one is missing.
  std::map<int, std::vector<net::Stream>> take(const Caller& me, int below, Clock::time_point deadline,
                                               const std::function<bool()>& cancelled);
  void look_again();  // `cancelled` may have changed

 private:
  // A caller that has not proved anything yet. Its thread is the only one that reads its socket.
  struct PendingHandshake {
    net::Stream stream;
    bool near = false;
    bool done = false;
    std::thread thread;
  };
  struct Parked {
    net::Stream stream;
    Caller caller;
    Clock::time_point since;
  };
  struct Key {
    std::uint64_t generation = 0;
    int rank = 0;
    int number = 0;  // of the rank's connections
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  // The connections from a rank that were taken.
  using Taken = std::vector<net::Stream>;

  void serve();
  void admit(FileDescriptor socket);
  void verify(PendingHandshake& pending);
  void park(const Caller& caller, net::Stream stream) DTRAIN_REQUIRES(mutex_);
  void reap(bool all);
  void drop_old() DTRAIN_REQUIRES(mutex_);
  bool take_what_came(const Caller& me, int below, std::map<int, Taken>& taken) DTRAIN_REQUIRES(mutex_);

  const net::StreamKey key_;
  const bool plain_;
  FileDescriptor listener_;
  const PeerAddress address_;
  const FileDescriptor near_listener_;  // none: not wanted, or not to be had
  Mutex mutex_;
  CondVar changed_;
  bool closing_ DTRAIN_GUARDED_BY(mutex_) = false;
  std::uint64_t newest_ DTRAIN_GUARDED_BY(mutex_) = 0;  // awaited so far
  std::multiset<std::uint64_t> awaited_ DTRAIN_GUARDED_BY(mutex_);
  std::map<Key, Parked> parked_ DTRAIN_GUARDED_BY(mutex_);
  std::list<PendingHandshake> handshakes_ DTRAIN_GUARDED_BY(mutex_);
  net::ConnectionQuota quota_ DTRAIN_GUARDED_BY(mutex_);  // of those that are not done
  std::thread thread_;
};

}  // namespace dtrain::comm::tcp
