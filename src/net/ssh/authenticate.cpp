#include "authenticate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <dtrain/base/base64.hpp>
#include <dtrain/net/ssh.hpp>

#include "agent_relay.hpp"

namespace dtrain::net::ssh {
namespace {

constexpr std::string_view kWhat = "proving who we are";
constexpr std::string_view kTooMany = "Too many authentication failures";  // what sshd says

// The bytes of a public key or a certificate; empty: libssh cannot say.
std::string blob_of(ssh_key key) {
  char* text = nullptr;
  if (ssh_pki_export_pubkey_base64(key, &text) != SSH_OK) return {};
  std::string blob = from_base64(text);
  ssh_string_free_char(text);
  return blob;
}

KeyHandle read_private(const Path& path) {
  ssh_key raw = nullptr;
  if (ssh_pki_import_privkey_file(path.c_str(), nullptr, nullptr, nullptr, &raw) != SSH_OK) return nullptr;
  return KeyHandle(raw);
}

KeyHandle read_certificate(const Path& path) {
  ssh_key raw = nullptr;
  if (ssh_pki_import_cert_file(path.c_str(), &raw) != SSH_OK) return nullptr;
  return KeyHandle(raw);
}

KeyHandle public_half(ssh_key key) {
  ssh_key raw = nullptr;
  if (ssh_pki_export_privkey_to_pubkey(key, &raw) != SSH_OK) return nullptr;
  return KeyHandle(raw);
}

// The public key of a file that holds one, or OpenSSH's private key, which needs no passphrase for that.
KeyHandle read_public(const Path& path) {
  ssh_key raw = nullptr;
  if (ssh_pki_import_pubkey_file(path.c_str(), &raw) != SSH_OK) return nullptr;
  return KeyHandle(raw);
}

Path certificate_of(const Path& key) { return key.string() + "-cert.pub"; }

// What the agent's keys are compared with. A key with a passphrase, or one whose private half only the agent has, is
// known by its file.
std::vector<std::string> named_keys(const Identity& identity) {
  std::vector<std::string> blobs;
  const auto add = [&blobs](const KeyHandle& key) {
    if (key) blobs.push_back(blob_of(key.get()));
  };
  for (const Path& path : identity.certificates) add(read_certificate(path));
  for (const Path& path : identity.keys) add(read_certificate(certificate_of(path)));
  for (const Path& path : identity.keys) {
    KeyHandle key = read_public(path);
    add(key ? std::move(key) : read_public(path.string() + ".pub"));
  }
  std::erase(blobs, std::string());
  return blobs;
}

// Whether the certificate is for this private key. Both begin with the name of their kind; the rest of the key stands
// somewhere in the certificate (PROTOCOL.certkeys of OpenSSH). ssh_key_cmp() calls them different in some versions.
bool is_for(ssh_key certificate, ssh_key key) {
  const KeyHandle open = public_half(key);
  if (!open) return false;
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

  // The agent has half of the time, so that keys still have the other half.
  bool with_agent() {
    FileDescriptor agent = connect_to_agent(identity_.agent_socket);
    if (!agent) return false;
    tried_.push_back(identity_.only_named_keys ? "the agent (IdentitiesOnly)" : "the agent");
    AgentRelay relay(std::move(agent), {named_keys(identity_), identity_.only_named_keys},
                     {Clock::now() + (patience_.until - Clock::now()) / 2, patience_.stop});
    ssh_set_agent_socket(connection_.get(), relay.take_socket().release());
    return accepted([&] { return ssh_userauth_agent(connection_.get(), nullptr); });
  }

  bool with_key(const Path& path) {
    if (::access(path.c_str(), F_OK) != 0) return false;
    tried_.push_back(path.string());
    const KeyHandle key = read_private(path);
    if (!key) {
      tried_.back() += " (cannot be read, or asks for a passphrase)";
      return false;
    }
    std::vector<Path> certificates = {certificate_of(path)};
    certificates.insert(certificates.end(), identity_.certificates.begin(), identity_.certificates.end());
    for (const Path& certificate : certificates) {
      if (with_certificate(certificate, path)) return true;
    }
    return with_loaded(key.get());
  }

  [[noreturn]] void give_up() const {
    const std::string tried =
        tried_.empty() ? "there is neither an agent nor a key" : fmt::format("tried {}", fmt::join(tried_, ", "));
    throw SshLoginRefused(
        fmt::format("{}: no key opens it for user '{}': {}", connection_.name(), identity_.user, tried),
        fmt::format("put a public key there: ssh-copy-id -p {} {}; or load its private one: ssh-add", identity_.port,
                    identity_.user + "@HOST"));
  }

 private:
  bool with_loaded(ssh_key key) {
    return accepted([&] { return ssh_userauth_publickey(connection_.get(), nullptr, key); });
  }

  // False also where the certificate is for another key. libssh keeps a certificate with the key that it was given to,
  // so each gets a key of its own.
  bool with_certificate(const Path& path, const Path& key_path) {
    if (::access(path.c_str(), F_OK) != 0) return false;
    const KeyHandle certificate = read_certificate(path);
    if (!certificate) {
      tried_.push_back(path.string() + " (cannot be read)");
      return false;
    }
    const KeyHandle key = read_private(key_path);
    if (!key || !is_for(certificate.get(), key.get())) return false;
    if (ssh_pki_copy_cert_to_privkey(certificate.get(), key.get()) != SSH_OK) return false;
    tried_.push_back(path.string());
    return with_loaded(key.get());
  }

  template <class Step>
  bool accepted(Step step) {
    // Once sshd has ended the connection, libssh says for ever that the answer is still to come.
    const auto step_or_lost = [&] {
      const int result = step();
      return result == SSH_AUTH_AGAIN && connection_.is_lost() ? SSH_AUTH_ERROR : result;
    };
    const int result = connection_.finish(kWhat, SSH_AUTH_AGAIN, patience_, step_or_lost);
    if (result == SSH_AUTH_ERROR && connection_.is_lost()) fail();
    return result == SSH_AUTH_SUCCESS;
  }

  [[noreturn]] void fail() const {
    const std::string reason = connection_.reason();
    if (reason.find(kTooMany) == std::string::npos) connection_.fail(kWhat);
    throw SshLoginRefused(
        fmt::format("{}: {}: {}: tried {}", connection_.name(), kWhat, reason, fmt::join(tried_, ", ")),
        "name the right key for this host by IdentityFile in ~/.ssh/config: it is offered first");
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

bool has_proof(const Identity& identity, const std::string& key, const Patience& patience) {
  const std::vector<std::string> named = named_keys(identity);
  const bool is_offered = !identity.only_named_keys || std::ranges::find(named, key) != named.end();
  if (is_offered && agent_holds(identity.agent_socket, key, patience)) return true;
  return std::ranges::any_of(identity.keys, [&](const Path& path) {
    const KeyHandle secret = read_private(path), open = secret ? public_half(secret.get()) : nullptr;
    return open && blob_of(open.get()) == key;
  });
}

}  // namespace dtrain::net::ssh
