// Which user of this machine has the other end of a connection to it: a page that only this machine reaches is for one
// user, also with a token, which others may see on the terminal.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace dtrain::board {

struct CallerPlace {
  std::string address;  // numeric
  std::uint16_t port = 0, called_port = 0;
};
// Whether the socket at that place is open and belongs to `user` or root, who may do all that `user` may. `table`: the
// content of /proc/net/tcp, and of tcp6 behind it. False where there is no such socket.
//
// Connections that ssh forwards come from a process of sshd, which has the user of the login.
bool is_of_user(std::string_view table, const CallerPlace& place, unsigned user);

// The same, of the user of this process.
bool is_own_caller(const CallerPlace& place);

// Asks once for each connection: the kernel walks through all of its connections for an answer, and a socket keeps its
// owner. One thread.
class OwnCallers {
 public:
  bool has(std::uint64_t connection, const CallerPlace& place);

 private:
  std::set<std::uint64_t> own_;  // the newest of them
};

}  // namespace dtrain::board
