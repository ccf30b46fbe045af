#include "authenticate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include <dtrain/base/base64.hpp>

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

// The bytes of a public key or a certificate; empty: libssh cannot say.
std::string blob_of(ssh_key key) {
  char* text = nullptr;
  if (ssh_pki_export_pubkey_base64(key, &text) != SSH_OK) return {};
  std::string blob = from_base64(text);
  ssh_string_free_char(text);
  return blob;
}

// Whether the certificate is for this private key. Both begin with the name of their kind; the rest of the key stands
// somewhere in the certificate (PROTOCOL.certkeys of OpenSSH). ssh_key_cmp() calls them different in some versions.
bool is_for(ssh_key certificate, ssh_key key) {
  ssh_key raw = nullptr;
  if (ssh_pki_export_privkey_to_pubkey(key, &raw) != SSH_OK) return false;
  const KeyHandle open(raw);
  const std::string blob = blob_of(open.get());
  const std::size_t behind_kind = 4 + std::strlen(ssh_key_type_to_char(ssh_key_type(open.get())));
  return blob.size() > behind_kind && blob_of(certificate).find(blob.substr(behind_kind)) != std::string::npos;
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
    std::vector<Path> certificates = {path.string() + "-cert.pub"};
    certificates.insert(certificates.end(), identity_.certificates.begin(), identity_.certificates.end());
    for (const Path& certificate : certificates) {
      if (with_certificate(certificate, path)) return true;
    }
    return with_loaded(key.get());
  }

  [[noreturn]] void give_up() const {
    const std::string tried =
        tried_.empty() ? "there is neither an agent nor a key" : fmt::format("tried {}", fmt::join(tried_, ", "));
    throw RemoteError(fmt::format("{}: no key opens it for user '{}': {}", connection_.name(), identity_.user, tried),
                      fmt::format("put a public key there: ssh-copy-id -p {} {}; or load its private one: ssh-add",
                                  identity_.port, identity_.user + "@HOST"));
  }

 private:
  bool with_loaded(ssh_key key) {
    return accepted([&] { return ssh_userauth_publickey(connection_.get(), nullptr, key); });
  }

  // False also where the certificate is for another key. libssh keeps a certificate with the key that it was given to,
  // so each gets a key of its own.
  bool with_certificate(const Path& path, const Path& key_path) {
    if (::access(path.c_str(), F_OK) != 0) return false;
    ssh_key raw_certificate = nullptr, raw_key = nullptr;
    if (ssh_pki_import_cert_file(path.c_str(), &raw_certificate) != SSH_OK) {
      tried_.push_back(path.string() + " (cannot be read)");
      return false;
    }
    const KeyHandle certificate(raw_certificate);
    if (ssh_pki_import_privkey_file(key_path.c_str(), nullptr, nullptr, nullptr, &raw_key) != SSH_OK) return false;
    const KeyHandle key(raw_key);
    if (!is_for(certificate.get(), key.get())) return false;
    if (ssh_pki_copy_cert_to_privkey(certificate.get(), key.get()) != SSH_OK) return false;
    tried_.push_back(path.string());
    return with_loaded(key.get());
  }

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
  attempts.give_up();
}

}  // namespace dtrain::net::ssh
