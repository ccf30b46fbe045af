#include "authenticate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "watchdog.hpp"

namespace dtrain::net::ssh {
namespace {

constexpr std::string_view kWhat = "proving who we are";

FileDescriptor connect_to_agent(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, path.data(), path.size());
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
  return socket;
}

class Attempts {
 public:
  Attempts(Connection& connection, const Identity& identity, const Patience& patience)
      : connection_(connection), identity_(identity), patience_(patience) {}

  bool with_nothing() {
    return accepted([&] { return ssh_userauth_none(connection_.get(), nullptr); });
  }

  // libssh waits for the agent's answers without an end: when half of the time is gone its socket is shut, so that keys
  // still have the other half.
  bool with_agent() {
    FileDescriptor socket = connect_to_agent(identity_.agent_socket);
    if (!socket) return false;
    tried_.push_back("the agent");
    const Watchdog watchdog(socket.get(), {Clock::now() + (patience_.until - Clock::now()) / 2, patience_.stop});
    ssh_set_agent_socket(connection_.get(), socket.release());
    return accepted([&] { return ssh_userauth_agent(connection_.get(), nullptr); });
  }

  bool with_key(const Path& path) {
    if (::access(path.c_str(), F_OK) != 0) return false;
    tried_.push_back(path.string());
    ssh_key raw = nullptr;
    if (ssh_pki_import_privkey_file(path.c_str(), nullptr, nullptr, nullptr, &raw) != SSH_OK) {
      tried_.back() += " (cannot be read, or asks for a passphrase)";
      return false;
    }
    const KeyHandle key(raw);
    return accepted([&] { return ssh_userauth_publickey(connection_.get(), nullptr, key.get()); });
  }

  [[noreturn]] void give_up(int port) const {
    const std::string tried =
        tried_.empty() ? "there is neither an agent nor a key" : fmt::format("tried {}", fmt::join(tried_, ", "));
    throw RemoteError(fmt::format("{}: no key opens it for user '{}': {}", connection_.name(), identity_.user, tried),
                      fmt::format("put a public key there: ssh-copy-id -p {} {}; or load its private one: ssh-add",
                                  port, identity_.user + "@HOST"));
  }

 private:
  template <class Step>
  bool accepted(Step step) {
    const int result = connection_.finish(kWhat, SSH_AUTH_AGAIN, patience_, step);
    if (result == SSH_AUTH_ERROR && connection_.is_lost()) connection_.fail(kWhat);
    return result == SSH_AUTH_SUCCESS;
  }

  Connection& connection_;
  const Identity& identity_;
  const Patience& patience_;
  std::vector<std::string> tried_;
};

}  // namespace

void authenticate(Connection& connection, const Identity& identity, const Patience& patience) {
  Attempts attempts(connection, identity, patience);
  if (attempts.with_nothing() || attempts.with_agent()) return;
  for (const Path& key : identity.keys) {
    if (attempts.with_key(key)) return;
  }
  unsigned port = 22;
  ssh_options_get_port(connection.get(), &port);
  attempts.give_up(static_cast<int>(port));
}

}  // namespace dtrain::net::ssh
