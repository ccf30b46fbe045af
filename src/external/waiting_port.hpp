// A port that is open before the program behind it. Rank 0 of PyTorch opens the store of the ranks itself; a rank that
// connects earlier is refused and retries only after a second. This port accepts it at once, waits for the store, and
// forwards bytes between the two without reading them.
//
// One thread owns all connections. The destructor wakes it through OwnPort::end() and joins it. A connection that
// breaks on one side is closed on the other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <thread>

#include <dtrain/base/files.hpp>
#include <dtrain/net/connection_quota.hpp>
#include <dtrain/net/socket_address.hpp>

#include "own_port.hpp"

namespace dtrain::external {

// Listens on a port of its own at this address, and forwards up to `most` connections at a time to `behind` at the same
// address, in a thread until it is destroyed. Where more come, those that the program has not answered yet are closed
// first; without such, further callers wait in the listen queue. A connection holds at most 64 KiB in each direction,
// and one that does not read delays itself alone; it is closed when bytes for it wait for a minute.
class WaitingPort {
 public:
  WaitingPort(const std::string& address, std::uint16_t behind, std::size_t most);  // throws Error
  ~WaitingPort();
  WaitingPort(const WaitingPort&) = delete;
  std::uint16_t port() const { return place_.number(); }
  bool was_called() const { return called_; }  // whether a connection came at any time

 private:
  // Bytes that came from one side and were not yet written to the other.
  struct Stream {
    FileDescriptor* from;
    FileDescriptor* to;
    std::string held{};
    bool ended = false;                             // and `to` was shut down
    bool moved = false;                             // bytes came at any time
    std::chrono::steady_clock::time_point since{};  // the first of `held` came or was last sent
  };
  struct Joint {
    FileDescriptor caller, program;
    Stream there{&caller, &program}, back{&program, &caller};
    Joint(FileDescriptor c, FileDescriptor p) : caller(std::move(c)), program(std::move(p)) {}
    Joint(const Joint&) = delete;
  };

  void serve();
  bool join_one();  // false: the program has not opened its port yet
  void drop_ended();
  static bool move(Stream& stream);  // false: it broke

  const net::SocketAddress behind_;
  net::ConnectionQuota quota_;
  OwnPort place_;
  std::list<Joint> joints_;
  std::atomic<bool> called_ = false;
  std::jthread thread_;
};

}  // namespace dtrain::external
