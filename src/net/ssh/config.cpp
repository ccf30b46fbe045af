#include "config.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <glob.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "user.hpp"

namespace dtrain::net::ssh {
namespace {

constexpr int kDeepestInclude = 16;
constexpr std::size_t kLongestText = 1 << 16;  // of a value after what it stands for is filled in

// These decide which machine may answer or from where it is asked, and libssh cannot follow them.
constexpr std::array<std::string_view, 8> kRefused = {"bindaddress",       "bindinterface",   "canonicalizehostname",
                                                      "knownhostscommand", "pkcs11provider",  "proxyusefdpass",
                                                      "revokedhostkeys",   "verifyhostkeydns"};
// A client resolves it before it prints what it would do.
constexpr std::string_view kResolvedByClient = "canonicalizehostname";
constexpr std::array<std::string_view, 6> kAlgorithms = {
    "ciphers", "macs", "kexalgorithms", "hostkeyalgorithms", "pubkeyacceptedalgorithms", "pubkeyacceptedkeytypes"};
constexpr std::array<std::string_view, 2> kFileLists = {"userknownhostsfile", "globalknownhostsfile"};

struct Line {
  std::string keyword;  // lower case
  std::string rest;     // all of it behind the keyword
  std::vector<std::string> values;
};

template <std::size_t size>
bool is_one_of(const std::array<std::string_view, size>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

// One word, or what stands in double quotes, off the front of `text`.
std::string take_word(std::string_view& text) {
  text = trim(text);
  const bool quoted = text.starts_with('"');
  const std::size_t begin = quoted ? 1 : 0;
  const std::size_t end = std::min(text.find_first_of(quoted ? "\"" : " \t", begin), text.size());
  std::string word(text.substr(begin, end - begin));
  text.remove_prefix(std::min(text.size(), end + begin));
  return word;
}

// `Keyword value...`, `Keyword=value`, `Keyword "a value"`; nullopt: a comment or nothing.
std::optional<Line> parse_line(std::string_view text) {
  text = trim(text);
  if (text.empty() || text.starts_with('#')) return std::nullopt;
  const std::size_t end = std::min(text.find_first_of(" \t="), text.size());
  Line line{lower_case(text.substr(0, end)), {}, {}};
  text = trim(text.substr(end));
  if (text.starts_with('=')) text = trim(text.substr(1));
  line.rest = text;
  while (!text.empty()) {
    line.values.push_back(take_word(text));
    text = trim(text);
  }
  return line;
}

// A line of `ssh -G`: nothing is quoted there, and only lists of files have several values.
Line parse_resolved_line(std::string_view text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  Line line{lower_case(text.substr(0, end)), std::string(trim(text.substr(end))), {}};
  line.values = is_one_of(kFileLists, line.keyword) ? split(line.rest, ' ') : std::vector{line.rest};
  return line;
}

// A negated pattern that fits takes the host out, whatever else fits.
bool fits(const std::vector<std::string>& patterns, const std::string& alias) {
  bool result = false;
  for (const std::string& pattern : patterns) {
    const bool negated = pattern.starts_with('!');
    if (::fnmatch(pattern.c_str() + (negated ? 1 : 0), alias.c_str(), 0) != 0) continue;
    if (negated) return false;
    result = true;
  }
  return result;
}

std::vector<std::string> files_like(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return paths;
}

// A host or user that a configured command may hold without quotes.
const std::string& harmless(const std::string& word, std::string_view what) {
  const auto is_harmless = [](unsigned char c) { return std::isalnum(c) || std::strchr("._:%@+-", c) != nullptr; };
  if (!word.starts_with('-') && std::ranges::all_of(word, is_harmless)) return word;
  throw UsageError(fmt::format("the {} '{}' cannot stand in a ProxyCommand", what, word),
                   "letters, digits and ._:%@+- can");
}

// Collects the values that count for one target.
class Collector {
 public:
  // `resolved`: names and lists of files are final; without it per cent signs and tildes in them mean something.
  Collector(const SshTarget& target, bool resolved) : target_(target), resolved_(resolved) {}

  void take(const Line& line, const std::string& where) {
    const std::string& keyword = line.keyword;
    const std::string& value = line.values[0];
    if (keyword == "hostname") {
      if (config_.host_name.empty()) config_.host_name = value;
    } else if (keyword == "user") {
      if (config_.user.empty()) config_.user = value;
    } else if (keyword == "port") {
      if (config_.port == 0) config_.port = port_of(value, where);
    } else if (keyword == "addressfamily") {
      if (is_first(keyword))
        config_.family = lower_case(value) == "inet" ? AF_INET : lower_case(value) == "inet6" ? AF_INET6 : 0;
    } else if (keyword == "proxyjump" || keyword == "proxycommand") {
      take_way(line);
    } else {
      take_proof(line, where);
    }
  }

  // Values for this host and this user, once all is known.
  HostConfig result() {
    HostConfig config = config_;
    if (!resolved_) config.host_name = expanded(config.host_name);
    for (Path& path : config.identities) path = file_of(path.string());
    for (Path& path : config.certificates) path = file_of(path.string());
    for (auto* files : {&config.user_known_hosts, &config.global_known_hosts}) {
      if (*files && !resolved_)
        std::ranges::transform(**files, (*files)->begin(), [&](const Path& file) { return file_of(file.string()); });
    }
    if (config.agent_socket) config.agent_socket = agent_of(*config.agent_socket);
    if (lower_case(config.jump) == "none") config.jump.clear();
    config.proxy_command = lower_case(config.proxy_command) == "none" ? "" : command_of(config.proxy_command);
    return config;
  }

  const LocalUser& user() const { return user_; }
  std::string with_home(const std::string& path) const {
    return path.starts_with("~/") ? (user_.home / path.substr(2)).string() : path;
  }

 private:
  bool is_first(const std::string& keyword) { return said_.insert(keyword).second; }

  // ProxyJump and ProxyCommand: the first of both counts.
  void take_way(const Line& line) {
    if (!is_first("proxy")) return;
    (line.keyword == "proxyjump" ? config_.jump : config_.proxy_command) = line.rest;
    if (line.keyword == "proxyjump") config_.jump = line.values[0];
  }

  // How each side proves who it is.
  void take_proof(const Line& line, const std::string& where) {
    const std::string& keyword = line.keyword;
    const std::string& value = line.values[0];
    if (keyword == "identityfile") {
      if (lower_case(value) != "none") config_.identities.push_back(value);
    } else if (keyword == "certificatefile") {
      if (lower_case(value) != "none") config_.certificates.push_back(value);
    } else if (keyword == "identitiesonly") {
      if (is_first(keyword)) config_.identities_only = lower_case(value) == "yes";
    } else if (keyword == "identityagent") {
      if (is_first(keyword)) config_.agent_socket = value;
    } else if (keyword == "hostkeyalias") {
      if (config_.host_key_alias.empty()) config_.host_key_alias = value;
    } else if (keyword == "stricthostkeychecking") {
      if (is_first(keyword)) config_.strict = strictness(lower_case(value));
    } else if (is_one_of(kFileLists, keyword)) {
      auto& files = keyword == kFileLists[0] ? config_.user_known_hosts : config_.global_known_hosts;
      if (!files) files.emplace(line.values.begin(), line.values.end());
    } else if (is_one_of(kAlgorithms, keyword)) {
      config_.algorithms.emplace(keyword, value);
    } else if (is_one_of(kRefused, keyword)) {
      refuse(line, where);
    }
  }

  static StrictKeys strictness(const std::string& value) {
    if (value == "yes" || value == "true") return StrictKeys::yes;
    const bool accepts = value == "accept-new" || value == "no" || value == "off" || value == "false";
    return accepts ? StrictKeys::accept_new : StrictKeys::unsaid;
  }

  void refuse(const Line& line, const std::string& where) {
    const std::string value = lower_case(line.values[0]);
    const bool is_off = value.empty() || value == "none" || value == "no" || value == "false";
    if (!is_first(line.keyword) || is_off || (resolved_ && line.keyword == kResolvedByClient)) return;
    throw UsageError(fmt::format("{}: dtrain cannot follow '{}' for {}", where, line.keyword, to_string(target_)),
                     "remove it for this host, or name a file without it: setting 'ssh-config'");
  }

  static int port_of(const std::string& value, const std::string& where) {
    const auto port = parse_integer(value);
    if (!port || *port < 1 || *port > 65535) {
      throw UsageError(fmt::format("{}: '{}' is no port", where, value), "write a number from 1 to 65535");
    }
    return static_cast<int>(*port);
  }

  std::string host() const {
    if (config_.host_name.empty()) return target_.host;
    return resolved_ ? config_.host_name : expanded(config_.host_name);
  }
  std::string remote_user() const {
    return !target_.user.empty() ? target_.user : config_.user.empty() ? user_.name : config_.user;
  }
  const std::string& key_name() const {
    if (!target_.host_key_alias.empty()) return target_.host_key_alias;
    return config_.host_key_alias.empty() ? target_.host : config_.host_key_alias;
  }
  int port() const { return target_.port != 0 ? target_.port : config_.port != 0 ? config_.port : 22; }

  // What a per cent sign and this letter stand for.
  std::string meaning(char letter, const std::string& text) const {
    switch (letter) {
      case '%':
        return "%";
      case 'h':
        return text == config_.host_name ? target_.host : host();
      case 'n':
        return target_.host;
      case 'k':
        return key_name();
      case 'p':
        return std::to_string(port());
      case 'r':
        return remote_user();
      case 'd':
        return user_.home.string();
      case 'u':
        return user_.name;
      case 'i':
        return std::to_string(::getuid());
      default:
        throw UsageError(
            fmt::format("ssh configuration of {}: dtrain does not know %{} in '{}'", to_string(target_), letter, text),
            "it knows %% %d %h %i %k %n %p %r %u");
    }
  }

  std::string expanded(const std::string& text) const {
    std::string result;
    for (std::size_t i = 0; i < text.size() && result.size() < kLongestText; ++i) {
      const bool stands_for_more = text[i] == '%' && i + 1 < text.size();
      result += stands_for_more ? meaning(text[++i], text) : std::string(1, text[i]);
    }
    return result;
  }

  // ${NAME} is the variable.
  std::string with_variables(const std::string& text) const {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = text.find("${", at), end = text.find('}', begin);
      if (begin == text.npos || end == text.npos) return result + text.substr(at);
      const std::string name = text.substr(begin + 2, end - begin - 2);
      const auto value = environment(name);
      if (!value)
        throw UsageError(fmt::format("ssh configuration of {}: ${{{}}} is not set", to_string(target_), name));
      result += text.substr(at, begin - at) + *value;
      at = end + 1;
    }
    return result;
  }

  Path file_of(const std::string& text) const { return with_home(expanded(with_variables(text))); }

  std::string agent_of(const std::string& text) const {
    if (lower_case(text) == "none") return "";
    if (text == "SSH_AUTH_SOCK") return environment(text).value_or("");
    if (text.starts_with('$') && !text.starts_with("${")) return environment(text.substr(1)).value_or("");
    return file_of(text);
  }

  std::string command_of(const std::string& text) const {
    if (text.empty()) return text;
    harmless(host(), "host");
    harmless(target_.host, "host");
    harmless(remote_user(), "user");
    return expanded(text);
  }

  const SshTarget& target_;
  const bool resolved_;
  LocalUser user_ = local_user();
  HostConfig config_;
  std::set<std::string> said_;  // keywords whose first value was taken
};

class Reader {
 public:
  Reader(const SshTarget& target, Collector& collector) : alias_(target.host), collector_(collector) {}

  void read(const Path& file, int depth) {
    std::error_code ignored;
    if (file.empty() || !std::filesystem::exists(file, ignored)) return;
    if (depth == 0) {
      folder_ = file.parent_path();
      applies_ = true;
    }
    int number = 0;
    for (const std::string& text : split(read_file(file), '\n')) {
      ++number;
      const auto line = parse_line(text);
      if (!line) continue;
      where_ = fmt::format("{}:{}", file.string(), number);
      if (line->values.empty()) throw UsageError(fmt::format("{}: '{}' has no value", where_, line->keyword));
      take(*line, depth);
    }
  }

 private:
  void take(const Line& line, int depth) {
    if (line.keyword == "host") {
      applies_ = fits(line.values, alias_);
    } else if (line.keyword == "match") {
      if (lower_case(line.rest) != "all") {
        throw UsageError(fmt::format("{}: only an ssh client can evaluate 'Match {}'", where_, line.rest),
                         "install openssh-client, or name a file without Match: setting 'ssh-config'");
      }
      applies_ = true;
    } else if (applies_ && line.keyword == "include") {
      for (const std::string& pattern : line.values) include(pattern, depth);
    } else if (applies_) {
      collector_.take(line, where_);
    }
  }

  // A Host line in the included file ends there, this block goes on after it.
  void include(const std::string& pattern, int depth) {
    if (depth >= kDeepestInclude) throw UsageError(fmt::format("{}: files include each other too deeply", where_));
    const Path path = collector_.with_home(pattern);
    const std::string where = where_;
    for (const std::string& file : files_like(path.is_absolute() ? path : folder_ / path)) {
      read(file, depth + 1);
      applies_ = true;
    }
    where_ = where;
  }

  const std::string alias_;
  Path folder_;  // what relative names in Include mean
  Collector& collector_;
  std::string where_;
  bool applies_ = true;
};

}  // namespace

HostConfig read_config(const std::vector<Path>& files, const SshTarget& target) {
  Collector collector(target, false);
  Reader reader(target, collector);
  for (const Path& file : files) reader.read(file, 0);
  return collector.result();
}

HostConfig parse_resolved(std::string_view resolved, std::string_view defaults, const SshTarget& target) {
  const std::vector<std::string> usual = split(defaults, '\n');
  const std::set<std::string> unsaid(usual.begin(), usual.end());
  Collector collector(target, true);
  for (const std::string& text : split(resolved, '\n')) {
    if (unsaid.contains(text)) continue;
    const Line line = parse_resolved_line(text);
    if (!line.rest.empty()) collector.take(line, "ssh configuration");
  }
  return collector.result();
}

}  // namespace dtrain::net::ssh
