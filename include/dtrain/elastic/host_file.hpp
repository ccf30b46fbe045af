// The file `host_worker` with one host a line. Editing it lets machines join and leave.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::elastic {

struct HostLine {
  std::string name;    // as written, without slots=; logs, events and messages use it
  std::string user{};  // empty: the user that runs dtrain
  std::string host{};
  int port = 0;  // 0: the launcher's default
  int slots = 1;
  friend bool operator==(const HostLine&, const HostLine&) = default;
};

struct HostList {
  std::vector<HostLine> hosts;          // in the file's order, each name once
  std::vector<std::string> problems{};  // lines that are ignored, with line number and reason
  std::vector<std::string> repeated{};  // beginnings of those problems that are hosts listed before
  std::vector<std::string> doubtful{};  // text of ignored lines that may be misspelt or damaged hosts
};

// Accepts blank lines, `#` comments, CR, surrounding spaces, and hosts as `host`, `host:port`, `user@host` or
// `[v6]:port`, each with an optional `slots=n` (default: `slots`). Never throws: a line that is no host becomes a
// problem.
HostList parse_host_file(std::string_view text, int slots = 1);

// The list in this file. Throws Error if the file cannot be read, and UsageError if it names no host.
HostList host_list_in(const Path& file, int slots = 1);

// The text with a line added, or without the lines of this host; all other lines stay as they are. Throws UsageError
// when the host is there already, or is not there (with the nearest name).
std::string with_host(std::string_view text, const std::string& line);
std::string without_host(std::string_view text, const std::string& name);

// Polls a file in a way that works on network file systems: lists the folder, opens the file anew, compares its
// content. An edit is accepted when the content stayed equal for `settle` and ends in a newline. Missing, empty and
// half-written files, and files without a valid line, are ignored; take_problem() says why, where one stays.
class HostFileWatcher {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit HostFileWatcher(Path path, std::chrono::milliseconds settle = std::chrono::seconds(2), int slots = 1);
  // The new list, once for each accepted edit. Looks at the file, which may be far away, a few times while it settles.
  [[nodiscard]] std::optional<HostList> poll(Time now);
  // Why the file, unchanged for seconds, is not used, as the last poll() found; once for each text.
  [[nodiscard]] std::optional<std::string> take_problem();

 private:
  std::optional<HostList> refuse(Time now, const std::string& problem);

  Path path_;
  std::chrono::milliseconds settle_;
  int slots_;
  std::string accepted_, candidate_;
  std::string refused_;  // the text that problem_ was about
  std::optional<std::string> problem_;
  Time candidate_since_{}, next_look_{};
};

}  // namespace dtrain::elastic
