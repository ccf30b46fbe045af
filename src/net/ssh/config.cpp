#include "config.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "user.hpp"

namespace dtrain::net::ssh {
namespace {

constexpr int kDeepestInclude = 16;

struct Line {
  std::string keyword;  // lower case
  std::vector<std::string> values;
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
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
  Line line{lower(text.substr(0, end)), {}};
  text = trim(text.substr(end));
  if (text.starts_with('=')) text = trim(text.substr(1));
  while (!text.empty()) {
    line.values.push_back(take_word(text));
    text = trim(text);
  }
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

class Reader {
 public:
  Reader(std::string alias, Path folder) : alias_(std::move(alias)), folder_(std::move(folder)) {}

  void read(const Path& file, int depth) {
    std::error_code ignored;
    if (file.empty() || !std::filesystem::exists(file, ignored)) return;
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

  // The words for this host and this user, once all is known.
  HostConfig result() {
    HostConfig config = config_;
    config.host_name = expanded(config.host_name);
    for (Path& path : config.identities) path = expanded(path.string());
    if (lower(config.jump) == "none") config.jump.clear();
    return config;
  }

 private:
  void take(const Line& line, int depth) {
    if (line.keyword == "host") {
      applies_ = fits(line.values, alias_);
    } else if (line.keyword == "match") {
      applies_ = line.values.size() == 1 && lower(line.values[0]) == "all";
    } else if (applies_) {
      take_value(line, depth);
    }
  }

  void take_value(const Line& line, int depth) {
    const std::string& value = line.values[0];
    if (line.keyword == "include") {
      for (const std::string& pattern : line.values) include(pattern, depth);
    } else if (line.keyword == "hostname") {
      if (config_.host_name.empty()) config_.host_name = value;
    } else if (line.keyword == "user") {
      if (config_.user.empty()) config_.user = value;
    } else if (line.keyword == "port") {
      if (config_.port == 0) config_.port = port_of(value);
    } else if (line.keyword == "identityfile") {
      if (lower(value) != "none") config_.identities.push_back(value);
    } else if (line.keyword == "identitiesonly") {
      if (!identities_only_said_) config_.identities_only = lower(value) == "yes";
      identities_only_said_ = true;
    } else if (line.keyword == "proxyjump") {
      if (config_.jump.empty()) config_.jump = value;
    }
  }

  // A Host line in the included file ends there, this block goes on after it.
  void include(const std::string& pattern, int depth) {
    if (depth >= kDeepestInclude) throw UsageError(fmt::format("{}: files include each other too deeply", where_));
    const Path path = with_home(pattern);
    const std::string where = where_;
    for (const std::string& file : files_like(path.is_absolute() ? path : folder_ / path)) {
      read(file, depth + 1);
      applies_ = true;
    }
    where_ = where;
  }

  int port_of(const std::string& value) const {
    const auto port = parse_integer(value);
    if (!port || *port < 1 || *port > 65535) {
      throw UsageError(fmt::format("{}: '{}' is no port", where_, value), "write a number from 1 to 65535");
    }
    return static_cast<int>(*port);
  }

  std::string with_home(const std::string& path) const {
    return path.starts_with("~/") ? (user_.home / path.substr(2)).string() : path;
  }

  // %h the host, %d the home, %u the user here, %r the user there, %% a per cent sign.
  std::string expanded(const std::string& text) const {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char next = text[i] == '%' && i + 1 < text.size() ? text[i + 1] : '\0';
      if (next == 'h') {
        result += config_.host_name.empty() || text == config_.host_name ? alias_ : expanded(config_.host_name);
      } else if (next == 'd') {
        result += user_.home.string();
      } else if (next == 'u') {
        result += user_.name;
      } else if (next == 'r') {
        result += config_.user.empty() ? user_.name : config_.user;
      } else if (next == '%') {
        result += '%';
      } else {
        result += text[i];
        continue;
      }
      ++i;
    }
    return with_home(result);
  }

  std::string alias_;
  Path folder_;  // what relative names in Include mean
  LocalUser user_ = local_user();
  HostConfig config_;
  std::string where_;
  bool applies_ = true, identities_only_said_ = false;
};

}  // namespace

HostConfig read_config(const Path& file, const std::string& alias) {
  Reader reader(alias, file.parent_path());
  reader.read(file, 0);
  return reader.result();
}

}  // namespace dtrain::net::ssh
