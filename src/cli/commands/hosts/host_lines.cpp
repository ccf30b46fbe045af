#include "host_lines.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include <dtrain/base/text.hpp>

namespace dtrain::cli {
namespace {

// A line that never ends is cut, so that it does not fill the memory.
constexpr std::size_t kLongestLine = 4 << 20;

}  // namespace

HostLines::HostLines(std::vector<std::string> hosts, std::string schema, Reporter& reporter)
    : hosts_(std::move(hosts)), schema_(std::move(schema)), unfinished_(hosts_.size()), reporter_(reporter) {}

std::string& HostLines::unfinished(std::size_t host, OutputStream stream) {
  return stream == OutputStream::output ? unfinished_[host].output : unfinished_[host].error;
}

void HostLines::take(std::size_t host, OutputStream stream, std::string_view bytes) {
  std::string& kept = unfinished(host, stream);
  const std::size_t end = bytes.rfind('\n');
  if (end == std::string_view::npos && kept.size() + bytes.size() < kLongestLine) {
    kept += bytes;
    return;
  }
  const std::size_t whole = end == std::string_view::npos ? bytes.size() : end;
  kept += bytes.substr(0, whole);
  show(host, stream, std::exchange(kept, std::string(bytes.substr(std::min(bytes.size(), whole + 1)))));
}

void HostLines::finish(std::size_t host) {
  for (const OutputStream stream : {OutputStream::output, OutputStream::error}) {
    std::string& kept = unfinished(host, stream);
    if (!kept.empty()) show(host, stream, std::exchange(kept, {}));
  }
}

void HostLines::show(std::size_t host, OutputStream stream, std::string_view lines) {
  const MutexLock lock(mutex_);
  for (std::size_t begin = 0; begin <= lines.size();) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    show_line(host, stream, lines.substr(begin, end - begin));
    begin = end + 1;
  }
  std::fflush(stdout);
}

void HostLines::show_line(std::size_t host, OutputStream stream, std::string_view line) {
  if (reporter_.json()) {
    reporter_.answer_json(
        Json::object({{"schema", schema_}, {"host", hosts_[host]}, {"stream", name_of(stream)}, {"line", line}}));
  } else if (stream == OutputStream::output) {
    reporter_.answer(fmt::format("{}: {}", hosts_[host], line));
  } else {
    reporter_.pass_on(fmt::format("{}: {}", hosts_[host], line));
  }
}

ExitCode end_of_hosts(ExitCode code, const std::vector<std::string>& hosts, Reporter& reporter) {
  const bool is_told = code == ExitCode::ok || code == ExitCode::partly_done;
  if (is_told || !reporter.json()) return code;
  const std::string number = count_text(hosts.size(), "host");
  const std::string hint = "standard output has the error of each host, and what to do about it";
  if (code == ExitCode::refused) throw RemoteError(fmt::format("reached none of {}", number), hint);
  throw Error(fmt::format("failed on each of {}", number), hint);
}

}  // namespace dtrain::cli
