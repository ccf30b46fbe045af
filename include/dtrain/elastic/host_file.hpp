// The file `host_worker`: one host a line. Editing it is how machines join and leave.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::elastic {

struct HostLine {
  std::string name;    // as written, without slots=: what log, events and messages call it
  std::string user{};  // empty: the caller's
  std::string host;
  int port = 0;  // 0: the launcher's default
  int slots = 1;
  friend bool operator==(const HostLine&, const HostLine&) = default;
};

struct HostList {
  std::vector<HostLine> hosts;        // in the file's order, each name once
  std::vector<std::string> problems;  // lines that count for nothing, with number and reason
  std::vector<std::string> doubtful;  // those of them that may be hosts, mistyped or damaged, as they stand there
};

// Blank lines, `#`, CR and spaces around are tolerated; `host`, `host:port`, `user@host`, `[v6]:port`, each with an
// optional `slots=n`; a host whose line does not say has `slots`. Never throws: what cannot be a host is a problem.
HostList parse_host_file(std::string_view text, int slots = 1);

// The text with a line added or without the lines of this host; all else stays as it was. UsageError: already there, or
// not there (with the nearest name).
std::string with_host(std::string_view text, const std::string& line);
std::string without_host(std::string_view text, const std::string& name);

// Polls one file the way that works on network file systems: lists the folder, opens anew, compares content. An edit
// counts once it was read equal over `settle` and ends in a newline. Missing, empty and half-written files, and files
// without one valid line, never count.
class HostFileWatcher {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit HostFileWatcher(Path path, std::chrono::milliseconds settle = std::chrono::seconds(2), int slots = 1);
  // A new list, once per accepted edit.
  std::optional<HostList> poll(Time now);

 private:
  Path path_;
  std::chrono::milliseconds settle_;
  int slots_;
  std::string accepted_, candidate_;
  Time candidate_since_{};
};

}  // namespace dtrain::elastic
