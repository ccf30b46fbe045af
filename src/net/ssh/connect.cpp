#include "connect.hpp"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>

#include <dtrain/base/base64.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/socket_address.hpp>

#include "authenticate.hpp"
#include "config.hpp"
#include "dial.hpp"
#include "host_key.hpp"
#include "proxy.hpp"
#include "user.hpp"

namespace dtrain::net::ssh {
namespace {

constexpr std::string_view kGreeting = "agreeing on keys";
constexpr int kMostHops = 8;
constexpr std::chrono::seconds kForTheAgent(3);

// A target with everything that the configuration adds to it.
struct Destination {
  std::string name;  // for messages
  std::string host, user;
  int port = 22, family = 0;
  Identity identity;
  HostKeyRules host_keys;
  std::string host_key_alias, jump, proxy_command;
  std::map<std::string, std::string> algorithms;
};

Destination look_up(const SshTarget& target, const SshOptions& options, const Patience& patience) {
  const HostConfig config = effective_config(target, options, patience);
  Destination to;
  to.name = to_string(target);
  to.host = config.host_name.empty() ? target.host : config.host_name;
  to.user = !target.user.empty() ? target.user : !config.user.empty() ? config.user : local_user().name;
  to.port = target.port != 0 ? target.port : config.port != 0 ? config.port : 22;
  to.family = config.family;
  to.identity = {.user = to.user,
                 .port = to.port,
                 .agent_socket = config.agent_socket.value_or(options.agent_socket),
                 .only_named_keys = config.identities_only,
                 .keys = config.identities,
                 .certificates = config.certificates};
  to.identity.keys.insert(to.identity.keys.end(), options.identities.begin(), options.identities.end());
  to.host_keys = host_key_rules(config, options);
  to.host_key_alias = target.host_key_alias.empty() ? config.host_key_alias : target.host_key_alias;
  to.jump = config.jump;
  to.proxy_command = config.proxy_command;
  to.algorithms = config.algorithms;
  return to;
}

// "user@host:port", "ssh://..." is not followed.
SshTarget parse_hop(std::string_view text) {
  SshTarget hop;
  if (const auto at = text.rfind('@'); at != std::string_view::npos) {
    hop.user = text.substr(0, at);
    text.remove_prefix(at + 1);
  }
  const bool bracketed = text.starts_with('[');
  const auto end = bracketed ? text.find(']') : text.find(':');
  hop.host = text.substr(bracketed ? 1 : 0, bracketed && end != std::string_view::npos ? end - 1 : end);
  const auto colon = end == std::string_view::npos ? end : text.find(':', end);
  const auto port = colon == std::string_view::npos ? 0 : parse_integer(text.substr(colon + 1)).value_or(-1);
  if (hop.host.empty() || port < 0 || port > 65535) {
    throw UsageError(fmt::format("'{}' is no host to jump over", text),
                     "write ProxyJump user@host:port, with an IPv6 address in brackets");
  }
  hop.port = static_cast<int>(port);
  return hop;
}

// The lists of the configuration in place of libssh's own; libssh passes over names that it does not know.
void choose_algorithms(ssh_session session, const Destination& there) {
  static const std::multimap<std::string_view, ssh_options_e> kOptions = {
      {"ciphers", SSH_OPTIONS_CIPHERS_C_S},
      {"ciphers", SSH_OPTIONS_CIPHERS_S_C},
      {"macs", SSH_OPTIONS_HMAC_C_S},
      {"macs", SSH_OPTIONS_HMAC_S_C},
      {"kexalgorithms", SSH_OPTIONS_KEY_EXCHANGE},
      {"hostkeyalgorithms", SSH_OPTIONS_HOSTKEYS},
      {"pubkeyacceptedalgorithms", SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES},
      {"pubkeyacceptedkeytypes", SSH_OPTIONS_PUBLICKEY_ACCEPTED_TYPES}};
  for (const auto& [keyword, names] : there.algorithms) {
    const auto [first, last] = kOptions.equal_range(keyword);
    for (auto option = first; option != last; ++option) {
      if (ssh_options_set(session, option->second, names.c_str()) == SSH_OK) continue;
      throw UsageError(fmt::format("ssh configuration of {}: libssh knows none of '{} {}'", there.name, keyword, names),
                       "add one that it knows, or remove the line for this host");
    }
  }
}

class JumpChain {
 public:
  JumpChain(const SshOptions& options, const Patience& patience) : options_(options), patience_(patience) {}

  // `jump` in place of what the configuration says, when it is given.
  Connected to(const SshTarget& target, const std::string* jump = nullptr) {
    if (++hops_ > kMostHops) {
      throw UsageError(fmt::format("the path to {} has more than {} hops", to_string(target), kMostHops),
                       fmt::format("look for a circle of ProxyJump in {}", options_.config.string()));
    }
    const Destination there = look_up(target, options_, patience_);
    Connected connected;
    FileDescriptor socket = open_socket(there, jump == nullptr ? there.jump : *jump, connected);
    connected.connection = std::make_unique<Connection>(there.name, std::move(socket));
    connected.user = there.user;
    log_in(*connected.connection, there);
    return connected;
  }

 private:
  FileDescriptor open_socket(const Destination& there, const std::string& jump, Connected& connected) {
    if (jump.empty() && !there.proxy_command.empty()) {
      const auto proxy = std::make_shared<ProxyProcess>(there.proxy_command);
      connected.carrier = proxy;
      return proxy->take_socket();
    }
    if (jump.empty()) {
      FileDescriptor socket = dial({there.name, there.host, there.port, there.family}, options_.silence, patience_);
      connected.local_address = SocketAddress::own_of(socket.get()).address();
      connected.peer_address = SocketAddress::peer_of(socket.get()).address();
      return socket;
    }
    const auto comma = jump.rfind(',');  // the last hop is reached over those before it
    const std::string before = comma == std::string::npos ? "" : jump.substr(0, comma);
    const SshTarget last = parse_hop(trim(std::string_view(jump).substr(comma == std::string::npos ? 0 : comma + 1)));
    Connected hop = to(last, comma == std::string::npos ? nullptr : &before);
    connected.local_address = hop.local_address;
    connected.peer_address = hop.peer_address;
    const auto tunnel =
        std::make_shared<Tunnel>(std::move(hop.carrier), std::move(hop.connection), there.host, there.port, patience_);
    connected.carrier = tunnel;
    return tunnel->take_socket();
  }

  void log_in(Connection& connection, const Destination& there) {
    const ssh_session session = connection.get();
    const int no = 0, socket = connection.lend_socket();
    // An alias is the whole name of the keys; libssh uses host and port for nothing else, since it gets a socket.
    const std::string& key_name = there.host_key_alias.empty() ? there.host : there.host_key_alias;
    const auto port = there.host_key_alias.empty() ? static_cast<unsigned>(there.port) : 22u;
    ssh_options_set(session, SSH_OPTIONS_PROCESS_CONFIG, &no);  // it would read ~/.ssh/config by itself
    ssh_options_set(session, SSH_OPTIONS_HOST, key_name.c_str());
    ssh_options_set(session, SSH_OPTIONS_PORT, &port);
    ssh_options_set(session, SSH_OPTIONS_USER, there.user.c_str());
    ssh_options_set(session, SSH_OPTIONS_FD, &socket);
    choose_algorithms(session, there);
    const HostKeyCheck host_key(session, there.host_keys, key_name, static_cast<int>(port));
    agree_on_keys(connection);
    host_key.check(connection);
    authenticate(connection, there.identity, patience_);
  }

  void agree_on_keys(Connection& connection) {
    const int result =
        connection.finish(kGreeting, SSH_AGAIN, patience_, [&] { return ssh_connect(connection.get()); });
    connection.never_block();
    if (result == SSH_OK) return;
    if (ssh_get_serverbanner(connection.get()) != nullptr) connection.fail(kGreeting);
    throw SshTurnedAway(fmt::format("{}: sshd closed the connection before it said a word", connection.name()),
                        "too many logins at once: raise MaxStartups in its sshd_config, or lower -j");
  }

  const SshOptions& options_;
  const Patience& patience_;
  int hops_ = 0;
};

}  // namespace

Connected connect(const SshTarget& target, const SshOptions& options, const Patience& patience) {
  return JumpChain(options, patience).to(target);
}

}  // namespace dtrain::net::ssh

namespace dtrain::net {

bool can_log_in_with(std::string_view public_key, const SshTarget& target, const SshOptions& options) {
  const std::vector<std::string> words = split(trim(public_key), ' ');
  if (words.size() < 2) return false;
  const ssh::Patience patience{ssh::Clock::now() + ssh::kForTheAgent, options.stop};
  return ssh::has_proof(ssh::look_up(target, options, patience).identity, from_base64(words[1]), patience);
}

}  // namespace dtrain::net
