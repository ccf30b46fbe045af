#include <dtrain/elastic/host_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::elastic {
namespace {

constexpr int kMaxSlots = 4'096;
constexpr std::size_t kMaxName = 255;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The host of a line, or why there is none.
struct Reading {
  HostLine host;
  std::string problem;
};

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
}
bool is_user_character(char c) { return is_name_character(c) || c == '+' || c == '$'; }
bool is_v6_character(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0 || c == ':' || c == '.' || c == '%' || is_name_character(c);
}

std::string_view without_comment(std::string_view line) { return trim(line.substr(0, line.find('#'))); }

std::string in_quotes(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 40)) shown += c >= ' ' && c <= '~' ? c : '?';
  return fmt::format("'{}'{}", shown, text.size() > 40 ? "..." : "");
}

std::optional<int> number_in(std::string_view text, int first, int last) {
  const auto number = parse_integer(text);
  if (!number || *number < first || *number > last) return std::nullopt;
  return static_cast<int>(*number);
}

// Accepts `host`, `host:port`, `[v6]`, `[v6]:port` or a bare v6 address.
std::string read_address(std::string_view text, HostLine& line) {
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return "']' is missing";
    line.host = text.substr(1, end - 1);
    port = text.substr(end + 1);
    if (!port.empty() && port[0] != ':') return fmt::format("{} after ']' is no port", in_quotes(port));
    if (line.host.find(':') == line.host.npos) return fmt::format("{} is no IPv6 address", in_quotes(line.host));
  } else if (std::ranges::count(text, ':') > 1) {
    line.host = text;
  } else {
    line.host = text.substr(0, text.find(':'));
    port = text.substr(line.host.size());
  }
  if (!port.empty()) {
    const auto number = number_in(port.substr(1), 1, 65'535);
    if (!number) return fmt::format("{} is no port", in_quotes(port.substr(1)));
    line.port = *number;
  }
  const bool v6 = line.host.find(':') != line.host.npos;
  if (line.host.empty()) return "no host";
  if (line.host.size() > kMaxName) return "the name is too long";
  if (line.host[0] == '-') return fmt::format("{} begins with '-'", in_quotes(line.host));
  if (!std::ranges::all_of(line.host, v6 ? is_v6_character : is_name_character)) {
    return fmt::format("{} is no host name or address", in_quotes(line.host));
  }
  return {};
}

std::string read_name(std::string_view text, HostLine& line) {
  line.name = text;
  if (const std::size_t at = text.find('@'); at != text.npos) {
    line.user = text.substr(0, at);
    const bool valid = !line.user.empty() && line.user[0] != '-' && std::ranges::all_of(line.user, is_user_character);
    if (!valid) return fmt::format("{} is no user name", in_quotes(line.user));
    text.remove_prefix(at + 1);
  }
  return read_address(text, line);
}

// Words of a line, separated by blanks.
std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!(line = trim(line)).empty()) {
    const std::size_t size = std::min(line.find_first_of(" \t\r\v\f"), line.size());
    words.push_back(line.substr(0, size));
    line.remove_prefix(size);
  }
  return words;
}

Reading read_line(std::string_view line, int slots_unless_said = 1) {
  Reading reading;
  reading.host.slots = slots_unless_said;
  const std::vector<std::string_view> words = words_of(line);
  reading.problem = read_name(words.front(), reading.host);
  for (std::size_t i = 1; i < words.size() && reading.problem.empty(); ++i) {
    const bool slots = words[i].starts_with("slots=");
    const auto number = slots ? number_in(words[i].substr(6), 1, kMaxSlots) : std::nullopt;
    if (number) reading.host.slots = *number;
    if (!slots)
      reading.problem = fmt::format("{} is not understood: only slots=N may follow a host", in_quotes(words[i]));
    if (slots && !number) reading.problem = fmt::format("{}: N must be 1 to {}", in_quotes(words[i]), kMaxSlots);
  }
  return reading;
}

bool is_host(const std::string& line, const std::string& name) {
  const std::string_view text = without_comment(line);
  if (text.empty()) return false;
  const Reading reading = read_line(text);
  return reading.problem.empty() && reading.host.name == name;
}

}  // namespace

HostList parse_host_file(std::string_view text, int slots) {
  HostList list;
  std::set<std::string> names;
  int number = 0;
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (const std::string& line : split(text, '\n')) {
    ++number;
    const std::string_view content = without_comment(line);
    if (content.empty()) continue;
    Reading reading = read_line(content, slots);
    if (!reading.problem.empty()) {
      list.doubtful.emplace_back(content);
    } else if (!names.insert(reading.host.name).second) {
      reading.problem = fmt::format("{} is listed twice", in_quotes(reading.host.name));
      list.repeated.push_back(fmt::format("line {}: {}", number, reading.problem));
      reading.problem += ": the first line counts";
    }
    if (reading.problem.empty()) {
      list.hosts.push_back(std::move(reading.host));
    } else {
      list.problems.push_back(fmt::format("line {}: {}", number, reading.problem));
    }
  }
  return list;
}

std::string with_host(std::string_view text, const std::string& line) {
  const std::string_view content = without_comment(line);
  if (content.empty() || content.find('\n') != content.npos) throw UsageError("a host is one line that names it");
  const Reading reading = read_line(content);
  if (!reading.problem.empty()) throw UsageError(fmt::format("{}: {}", in_quotes(content), reading.problem));
  for (const HostLine& host : parse_host_file(text).hosts) {
    if (host.name == reading.host.name) throw UsageError(fmt::format("{} is in the host list already", host.name));
  }
  const bool complete = text.empty() || text.ends_with('\n');
  return fmt::format("{}{}{}\n", text, complete ? "" : "\n", content);
}

std::string without_host(std::string_view text, const std::string& name) {
  std::string rest;
  bool found = false;
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string line(text.substr(0, size));
    text.remove_prefix(size);
    if (is_host(line, name)) {
      found = true;
    } else {
      rest += line;
    }
  }
  if (found) return rest;
  for (const HostLine& host : parse_host_file(rest).hosts) names.push_back(host.name);
  const auto nearest = nearest_name(name, names);
  throw UsageError(
      fmt::format("{} is not in the host list", in_quotes(name)),
      nearest ? fmt::format("did you mean {}?", *nearest)
              : fmt::format("it lists {}", names.empty() ? "no host" : fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace dtrain::elastic
