#include "host_key.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <dtrain/base/pipe.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::net::ssh {
namespace {

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

bool ends_within_a_line(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  char last = '\n';
  return size > 0 && ::pread(file, &last, 1, size - 1) == 1 && last != '\n';
}

// One line in one write: several connections may add theirs at the same time.
void append_line(const Path& path, std::string line) {
  if (path.has_parent_path()) make_folder(path.parent_path());
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  // A last line that an editor or a copy left without its end would swallow this one, and be spoilt by it.
  if (file && ends_within_a_line(file.get())) line.insert(0, 1, '\n');
  if (!file || ::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw Error(fmt::format("cannot add a host key to {}: {}", path.string(), std::strerror(errno)));
  }
}

std::string read_if_any(const Path& file) {
  std::error_code ignored;
  if (file.empty() || !std::filesystem::is_regular_file(file, ignored)) return {};
  return read_file(file) + "\n";
}

// "HOST KIND BASE64"; the last word is the key.
std::string key_of(const std::string& entry) {
  const std::vector<std::string> words = split(trim(entry), ' ');
  return words.size() < 3 ? std::string() : words[2];
}

std::string entry_of(Connection& connection) {
  char* entry = nullptr;
  if (ssh_session_export_known_hosts_entry(connection.get(), &entry) != SSH_OK)
    connection.fail("cannot read its host key");
  std::string line(entry);
  ssh_string_free_char(entry);
  return line;
}

// libssh knows no markers: a line "@revoked HOSTS KIND KEY" forbids the key, whatever other lines say.
bool is_revoked(std::string_view known, const std::string& key) {
  for (const std::string& line : split(known, '\n')) {
    if (line.starts_with("@revoked") && line.find(key) != std::string::npos) return true;
  }
  return false;
}

std::string all_of(const std::vector<Path>& files) {
  std::string text;
  for (const Path& file : files) text += read_if_any(file);
  return text;
}

std::string names_of(const std::vector<Path>& files) {
  std::vector<std::string> names;
  for (const Path& file : files) names.push_back(file.string());
  return names.empty() ? "any file given" : join(names, ", ");
}

}  // namespace

HostKeyRules host_key_rules(const HostConfig& config, const SshOptions& options) {
  const std::vector<Path>& user = options.user_known_hosts.empty()
                                      ? options.user_known_hosts
                                      : config.user_known_hosts.value_or(options.user_known_hosts);
  const std::vector<Path>& global = options.global_known_hosts.empty()
                                        ? options.global_known_hosts
                                        : config.global_known_hosts.value_or(options.global_known_hosts);
  HostKeyRules rules{.add_to = options.known_hosts, .files = {}};
  if (rules.add_to.empty() && !user.empty()) rules.add_to = user.front();
  if (!options.known_hosts.empty()) rules.files.push_back(options.known_hosts);
  rules.files.insert(rules.files.end(), user.begin(), user.end());
  rules.files.insert(rules.files.end(), global.begin(), global.end());
  const bool accepts =
      options.new_host_keys == NewHostKeys::accept ||
      (options.new_host_keys == NewHostKeys::accept_unless_strict && config.strict != StrictKeys::yes) ||
      config.strict == StrictKeys::accept_new;
  rules.accept_new = accepts && !rules.add_to.empty();
  return rules;
}

HostKeyCheck::HostKeyCheck(ssh_session session, HostKeyRules rules, std::string host, int port)
    : rules_(std::move(rules)), host_(std::move(host)), port_(port), known_(memory_file(all_of(rules_.files))) {
  const std::string known = fmt::format("/proc/self/fd/{}", known_.get());
  ssh_options_set(session, SSH_OPTIONS_KNOWNHOSTS, known.c_str());
  ssh_options_set(session, SSH_OPTIONS_GLOBAL_KNOWNHOSTS, "/dev/null");
}

void HostKeyCheck::check(Connection& connection) const {
  const std::string entry = entry_of(connection);
  if (is_revoked(all_of(rules_.files), key_of(entry)))
    throw SshHostKeyChanged(fmt::format("{}: its host key {} is revoked in {}", connection.name(),
                                        fingerprint_of(connection.get()), names_of(rules_.files)),
                            "another machine may answer in its place: ask who revoked the key");
  switch (ssh_session_is_known_server(connection.get())) {
    case SSH_KNOWN_HOSTS_OK:
      return;
    case SSH_KNOWN_HOSTS_CHANGED:
    case SSH_KNOWN_HOSTS_OTHER:
      throw SshHostKeyChanged(
          fmt::format("{}: its host key is not the one in {}: it offers {}; it was installed anew, or "
                      "another machine answers in its place",
                      connection.name(), names_of(rules_.files), fingerprint_of(connection.get())),
          "if the new key is right, forget the old one: " + forget_command(), forget_command());
    case SSH_KNOWN_HOSTS_UNKNOWN:
    case SSH_KNOWN_HOSTS_NOT_FOUND:
      if (!rules_.accept_new) refuse_new(connection);
      return append_line(rules_.add_to, entry);
    case SSH_KNOWN_HOSTS_ERROR:
      break;
  }
  connection.fail(fmt::format("cannot compare its host key with {}", names_of(rules_.files)));
}

void HostKeyCheck::refuse_new(const Connection& connection) const {
  const std::string hint = rules_.add_to.empty() ? "name a file of host keys"
                                                 : fmt::format("if that is its key: ssh-keyscan -p {} {} >> {}", port_,
                                                               host_, shell_quoted(rules_.add_to.string()));
  throw RemoteError(fmt::format("{}: its host key {} is not in {}", connection.name(), fingerprint_of(connection.get()),
                                names_of(rules_.files)),
                    hint);
}

// What takes the host out of the files that hold another key for it.
std::string HostKeyCheck::forget_command() const {
  const std::string name = port_ == 22 ? host_ : fmt::format("'[{}]:{}'", host_, port_);
  std::vector<std::string> commands;
  for (const Path& file : rules_.files) {
    if (::access(file.c_str(), W_OK) != 0) continue;
    commands.push_back(fmt::format("ssh-keygen -R {} -f {}", name, shell_quoted(file.string())));
  }
  return join(commands, "; ");
}

}  // namespace dtrain::net::ssh
