// The user's ssh agent (draft-miller-ssh-agent), with its keys in the order in which they are to be offered.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dtrain/base/files.hpp>

#include "patience.hpp"

namespace dtrain::net::ssh {

// Which of the agent's keys are offered. Each is the bytes of a public key or a certificate.
struct AgentOrder {
  std::vector<std::string> first;
  bool no_others = false;
};

// Pure. An agent's answer with its keys, in this order. RemoteError: it ends too early.
std::string in_order(std::string_view identities, const AgentOrder& order);

// The agent at this path; empty: none answers there.
FileDescriptor connect_to_agent(const std::string& path);
// Whether the agent at this path holds the key. False also where it does not answer in time.
bool agent_holds(const std::string& path, const std::string& key, const Patience& patience);

// A socket at which libssh finds the agent. A thread passes each request on, one at a time, and orders the keys of the
// answer: libssh offers all keys as they come, and sshd ends the connection after some. libssh waits for an answer
// without an end, so the socket is shut down when the patience is over, a stop is asked for, the agent is gone, or this
// is destroyed.
class AgentRelay {
 public:
  AgentRelay(FileDescriptor agent, AgentOrder order, Patience patience);
  ~AgentRelay();
  AgentRelay(const AgentRelay&) = delete;

  FileDescriptor take_socket() { return std::move(near_end_); }

 private:
  void serve(const std::stop_token& done) const;
  std::string ordered(std::string answer) const;
  bool wait_for(int socket, short events, const std::stop_token& done) const;  // false: it is over
  // A message without its length; nullopt: there will be none.
  std::optional<std::string> take(int socket, const std::stop_token& done) const;
  bool give(int socket, std::string_view message, const std::stop_token& done) const;

  FileDescriptor agent_, near_end_, far_end_;
  const AgentOrder order_;
  const Patience patience_;
  std::jthread thread_;  // uses the descriptors and the order, which nothing changes while it runs
};

}  // namespace dtrain::net::ssh
