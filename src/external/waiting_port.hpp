// A port that is open before the program behind it is. Rank 0 of PyTorch opens the ranks' store itself; a rank that
// calls earlier is refused, and tries again only after a second. Here it is let in at once, waits for the store, and is
// joined to it. The bytes are not looked at.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <thread>

#include <dtrain/base/files.hpp>

#include "own_port.hpp"

namespace dtrain::external {

// Listens on a port of its own of this address, and joins who calls to `behind` of the same address, in a thread until
// it is destroyed.
class WaitingPort {
 public:
  WaitingPort(const std::string& address, std::uint16_t behind);  // throws Error
  ~WaitingPort();
  WaitingPort(const WaitingPort&) = delete;
  std::uint16_t port() const { return place_.number(); }

 private:
  // What came from one side and the other has not taken yet.
  struct Stream {
    FileDescriptor* from;
    FileDescriptor* to;
    std::string held{};
    bool ended = false;  // and `to` was told so
  };
  struct Joint {
    FileDescriptor caller, program;
    Stream there{&caller, &program}, back{&program, &caller};
    Joint(FileDescriptor c, FileDescriptor p) : caller(std::move(c)), program(std::move(p)) {}
    Joint(const Joint&) = delete;
  };

  void serve();
  bool join_one();                   // false: the program has not opened its port yet
  static bool move(Stream& stream);  // false: it broke

  const std::string address_;
  const std::uint16_t behind_;
  OwnPort place_;
  std::list<Joint> joints_;
  std::jthread thread_;
};

}  // namespace dtrain::external
