#include "host_key.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dtrain::net::ssh {
namespace {

// libssh expands per cent signs in the names of its files.
std::string literal(const Path& path) {
  if (path.empty()) return "/dev/null";
  std::string text;
  for (const char c : path.string()) text += c == '%' ? std::string("%%") : std::string(1, c);
  return text;
}

// "SHA256:...", empty when libssh cannot say.
std::string fingerprint_of(ssh_session session) {
  ssh_key raw = nullptr;
  if (ssh_get_server_publickey(session, &raw) != SSH_OK) return {};
  const KeyHandle key(raw);
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (ssh_get_publickey_hash(key.get(), SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != SSH_OK) return {};
  char* text = ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size);
  ssh_clean_pubkey_hash(&hash);
  std::string result = text == nullptr ? "" : text;
  ssh_string_free_char(text);
  return result;
}

// One line in one write: several connections may add theirs at the same time.
void append_line(const Path& path, const std::string& line) {
  if (path.has_parent_path()) make_folder(path.parent_path());
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (!file || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw Error(fmt::format("cannot add a host key to {}: {}", path.string(), std::strerror(errno)));
  }
}

void accept(Connection& connection, const Path& known_hosts) {
  char* entry = nullptr;
  if (ssh_session_export_known_hosts_entry(connection.get(), &entry) != SSH_OK)
    connection.fail("cannot read its host key");
  const std::string line(entry);
  ssh_string_free_char(entry);
  append_line(known_hosts, line);
}

std::string entry_name(const std::string& host, int port) {
  return port == 22 ? host : fmt::format("'[{}]:{}'", host, port);
}

// What takes the host out of the files that hold another key for it.
std::string forget_command(const SshOptions& options, const std::string& host, int port) {
  std::string command;
  for (const Path& file : {options.known_hosts, options.more_known_hosts}) {
    if (file.empty() || ::access(file.c_str(), W_OK) != 0) continue;
    command += fmt::format("{}ssh-keygen -R {} -f {}", command.empty() ? "" : "; ", entry_name(host, port),
                           shell_quoted(file.string()));
  }
  return command;
}

}  // namespace

void name_host_key_files(ssh_session session, const SshOptions& options) {
  ssh_options_set(session, SSH_OPTIONS_KNOWNHOSTS, literal(options.known_hosts).c_str());
  ssh_options_set(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, literal(options.more_known_hosts).c_str());
}

void check_host_key(Connection& connection, const SshOptions& options, const std::string& host, int port) {
  const std::string file = options.known_hosts.string();
  switch (ssh_session_is_known_server(connection.get())) {
    case SSH_KNOWN_HOSTS_OK:
      return;
    case SSH_KNOWN_HOSTS_CHANGED:
    case SSH_KNOWN_HOSTS_OTHER:
      throw RemoteError(fmt::format("{}: its host key is not the one in {}: it offers {}; it was installed anew, or "
                                    "another machine answers in its place",
                                    connection.name(), file, fingerprint_of(connection.get())),
                        "if the new key is right, forget the old one: " + forget_command(options, host, port));
    case SSH_KNOWN_HOSTS_UNKNOWN:
    case SSH_KNOWN_HOSTS_NOT_FOUND:
      if (options.accept_new && !options.known_hosts.empty()) return accept(connection, options.known_hosts);
      throw RemoteError(fmt::format("{}: its host key {} is not in {}", connection.name(),
                                    fingerprint_of(connection.get()), file.empty() ? "any file given" : file),
                        fmt::format("if that is its key: ssh-keyscan -p {} {} >> {}", port, host, shell_quoted(file)));
    case SSH_KNOWN_HOSTS_ERROR:
      break;
  }
  connection.fail(fmt::format("cannot compare its host key with {}", file));
}

}  // namespace dtrain::net::ssh
