// All logs of a job folder as one stream of lines: existing lines in the order of their times, then new ones.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "log_source.hpp"

namespace dtrain::job {

// A POSIX extended regular expression; a pattern without special characters is searched literally.
class LinePattern {
 public:
  explicit LinePattern(const std::string& text);  // throws UsageError
  ~LinePattern();
  LinePattern(const LinePattern&) = delete;
  bool matches(std::string_view line) const;

 private:
  struct Compiled;
  std::string plain_;
  std::unique_ptr<Compiled> compiled_;
};

struct LogChoice {
  std::optional<int> rank;
  std::string host;                        // empty: all
  std::string since;                       // as in the logs; empty: from the beginning. Lines without a time pass
  std::unique_ptr<LinePattern> pattern{};  // null: all
};

class LogMerge {
 public:
  LogMerge(Path folder, LogChoice choice) : folder_(std::move(folder)), choice_(std::move(choice)) {}

  // Looks for new logs, and passes on every complete line that is selected. Returns false if there was none.
  bool poll(const std::function<void(const LogSource& line)>& take);
  // No more lines will be written.
  void end();
  // Those that workers had in the lines so far, selected or not, of the selected host.
  const std::set<int>& ranks() const { return ranks_; }
  // Those that have logs, selected or not.
  const std::set<std::string>& hosts() const { return hosts_; }

 private:
  void find_sources();
  bool chosen(const LogSource& line) const;

  const Path folder_;
  const LogChoice choice_;
  std::map<std::string, std::unique_ptr<LogSource>> sources_;  // by file name
  std::set<int> ranks_;
  std::set<std::string> hosts_;
};

}  // namespace dtrain::job
