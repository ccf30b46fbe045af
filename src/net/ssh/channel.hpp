// One channel of a connection: incoming bytes are collected, outgoing ones wait for the other side's window.
//
// All members run on the thread that uses the connection; there are no locks. libssh calls the callbacks inside
// Connection::pump(), and they only append to strings. The connection must outlive its channels. A channel that the
// other side closed reports it by has_ended() and is_closed(); only opening one and starting a program throw
// RemoteError.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "connection.hpp"

namespace dtrain::net::ssh {

class Channel {
 public:
  // Opens it; the connection's events have begun. RemoteError.
  Channel(Connection& connection, const Patience& patience);                                     // for a program
  Channel(Connection& connection, const std::string& host, int port, const Patience& patience);  // to a port beyond it
  Channel(const Channel&) = delete;

  void exec(const std::string& line, const Patience& patience);
  void subsystem(const std::string& name, const Patience& patience);

  // Sends from the front of `bytes` what fits into the window, and removes it. False: the other side does not read any
  // more.
  bool send(std::string_view& bytes);
  void send_end();
  void send_signal(const char* name);  // "TERM", to the program's process group

  // What came since it was last taken.
  std::string take_output() { return std::exchange(output_, {}); }
  std::string take_error() { return std::exchange(error_, {}); }
  bool has_ended() const { return ended_ || closed_; }  // the other side sends no more
  bool is_closed() const { return closed_; }
  int exit_code() const { return exit_code_; }  // -1: not said
  const std::string& exit_signal() const { return exit_signal_; }

 private:
  explicit Channel(Connection& connection);
  void finish(std::string_view what, const Patience& patience, int (*ask)(ssh_channel, const char*), const char* text);

  Connection& connection_;
  ssh_channel_callbacks_struct callbacks_{};  // libssh keeps its address until the channel is freed
  ChannelHandle channel_;
  std::string output_, error_, exit_signal_;
  int exit_code_ = -1;
  bool ended_ = false, closed_ = false;
};

}  // namespace dtrain::net::ssh
