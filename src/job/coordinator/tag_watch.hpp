// `dtrain cluster watch` beside an elastic job, for as long as its coordinator lives: a process of its own, so that
// nothing that AWS does, or does not, can delay a step or end the job.
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

// Whose tags the coordinator of an elastic job follows: both variables of a cluster's set-up are there. Pure.
struct TagWatchChoice {
  std::string cluster{};    // empty: nobody's
  std::string complaint{};  // why not, where a person must have meant it; else empty
};
TagWatchChoice choose_tag_watch(
    const std::function<std::optional<std::string>(const std::string& variable)>& environment);

class TagWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // The folder is a whole path. Borrows the reporter, whose thread calls all of this.
  TagWatch(std::string cluster, JobFolder folder, Reporter& reporter);
  ~TagWatch();  // nobody watches any more
  TagWatch(const TagWatch&) = delete;
  TagWatch& operator=(const TagWatch&) = delete;

  // Passes on what the process says, and starts another one a while after it was lost. Never blocks, never throws.
  void tick(Time now);

 private:
  void start();
  void pass_on();
  void end();

  const std::string cluster_;
  const JobFolder folder_;
  Reporter& reporter_;
  pid_t process_ = 0;  // 0: it does not run
  FileDescriptor output_;
  std::string unfinished_;  // the begin of a line
  Time next_start_{};
};

}  // namespace dtrain::job
