// Whether a process of this machine coordinates a job, asked without touching its lock: a job that begins would take
// a lock that is tried for one that is held.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace dtrain::board {

// The files with locks of flock(2), as "MAJOR:MINOR:INODE", from the text of /proc/locks.
std::set<std::string> parse_locks(std::string_view text);

class HeldLocks {
 public:
  HeldLocks();  // as they are now
  bool holds(const std::string& path) const;

 private:
  std::set<std::string> files_;
};

}  // namespace dtrain::board
