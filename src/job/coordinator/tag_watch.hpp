// Runs `dtrain cluster watch` beside an elastic job, as long as its coordinator lives. It is a process of its own, so
// slow or failing AWS calls cannot delay a step or end the job. The coordinator's thread calls all members; none of
// them blocks: tick() reads the process's output without waiting, and starts it again some time after it ended. The
// process gets a death signal when the coordinator ends, and the destructor kills it; steps that it left undone are
// decided again by the next watcher.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/base/reporter.hpp>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// The cluster whose tags the coordinator of an elastic job follows, chosen by the two variables of a cluster's set-up.
// Pure.
struct TagWatchChoice {
  std::string cluster{};    // empty: none
  std::string complaint{};  // reason, if a user seems to have meant it; otherwise empty
};
TagWatchChoice choose_tag_watch(
    const std::function<std::optional<std::string>(const std::string& variable)>& environment);

class TagWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // `folder`: an absolute path. Borrows the reporter.
  TagWatch(std::string cluster, JobFolder folder, Reporter& reporter);
  ~TagWatch();  // ends the process
  TagWatch(const TagWatch&) = delete;
  TagWatch& operator=(const TagWatch&) = delete;

  // Forwards output of the process to the reporter, and restarts it some time after it ended. Never blocks or throws.
  void tick(Time now);

 private:
  void start();
  void pass_on();
  void end();

  const std::string cluster_;
  const JobFolder folder_;
  Reporter& reporter_;
  pid_t process_ = 0;  // 0: not running
  FileDescriptor output_;
  std::string unfinished_;  // beginning of an incomplete line
  Time next_start_{};
};

}  // namespace dtrain::job
