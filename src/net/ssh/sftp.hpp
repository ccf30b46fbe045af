// The SSH File Transfer Protocol, version 3 (draft-ietf-secsh-filexfer-02), as sshd speaks it. Our own, because
// libssh's waits have no end, writes one piece a round trip, and cannot replace a file by renaming.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/net/ssh.hpp>

#include "channel.hpp"

namespace dtrain::net::ssh {

// It has neither threads nor locks: one thread at a time calls it, and replies are taken while that thread waits for
// one of them. Each request has a number. All requests but writes wait for their own reply; up to 64 writes are in
// flight, their replies are matched by number whenever they arrive, and finish_writes() waits for the rest. The
// connection must outlive it, and serves no other call while one of these members runs. A request that the host refuses
// throws RemoteError "HOST: cannot WHAT: the host's words", and the next request works. A lost connection, a host that
// is silent for too long and a packet that is not SFTP also throw RemoteError, and end the session.
class Sftp {
 public:
  // A host that sends nothing for `silence` during a request counts as lost.
  Sftp(Connection& connection, std::chrono::milliseconds silence, std::stop_token stop);

  std::optional<SshFile> stat(const std::string& path);  // follows links
  std::vector<SshFile> list(const std::string& folder);
  bool make_one_folder(const std::string& path, unsigned mode);  // false: refused, perhaps it is there
  void rename(const std::string& from, const std::string& to);
  bool remove(const std::string& path);  // false: there is none
  void set_mode(const std::string& path, unsigned mode);
  bool try_set_mode(const std::string& path, unsigned mode);  // false: refused

  enum class Open { read, create };                                           // create: empty, whatever was there
  std::string open(const std::string& path, Open how, unsigned mode = 0600);  // a handle
  void close(const std::string& handle);
  // Returns before the host confirms it, with up to 64 writes in flight. Throws as finish_writes() where one before it
  // has failed.
  void write(const std::string& handle, std::uint64_t offset, std::string_view bytes);
  void finish_writes(const std::string& handle);  // throws the first failure of all, with the file closed
  void forget_writes();                           // what the host answers to them counts no more
  std::string read(const std::string& handle, std::uint64_t offset, std::uint32_t most);  // empty: the end

 private:
  struct Reply {
    std::uint8_t type = 0;
    std::uint32_t id = 0;
    std::string body;
  };
  struct Status {
    std::uint32_t code = 0;
    std::string message;
  };

  std::uint32_t send(std::uint8_t type, std::string_view body);
  Reply ask(std::uint8_t type, std::string_view body);
  Reply ask_mode(const std::string& path, unsigned mode);
  Reply receive();
  void take_write_answer(const Reply& reply);
  [[noreturn]] void fail_to_write(const std::string& handle, const Status& status);
  bool has_no_room(const std::string& handle);
  Status status_of(const Reply& reply) const;
  void expect_ok(const Reply& reply, std::string_view what) const;
  std::string expect_handle(const Reply& reply, std::string_view what) const;
  [[noreturn]] void fail(std::string_view what, const Status& status, std::string hint = {}) const;
  void begin();
  void transmit(std::string_view packet);
  std::string next_packet();
  [[noreturn]] void refuse_strange_bytes() const;
  Patience patience() const { return {Clock::now() + silence_, stop_}; }

  Connection& connection_;
  const std::chrono::milliseconds silence_;
  const std::stop_token stop_;
  Channel channel_;
  std::string received_;  // bytes of packets that are not whole yet
  std::uint32_t last_id_ = 0;
  std::set<std::uint32_t> writing_;  // writes without an answer yet
  std::optional<Status> failed_write_;
  bool can_replace_ = false;  // the host has posix-rename@openssh.com
};

}  // namespace dtrain::net::ssh
