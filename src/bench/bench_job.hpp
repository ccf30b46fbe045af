// A job of this program under measurement: a child process whose steps, events and workers are observed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/json.hpp>

#include "job/spec/job_folder.hpp"

namespace dtrain::bench {

class BenchJob {
 public:
  // Starts `dtrain train` with these arguments and with --json and --job-dir. `folder` holds the job's files.
  BenchJob(const Path& folder, std::vector<std::string> arguments);
  // Ends the job and waits for all of its processes.
  ~BenchJob();
  BenchJob(const BenchJob&) = delete;

  const job::JobFolder& files() const { return files_; }
  // Seconds of each step so far, in order.
  std::vector<double> step_seconds() const;
  // The events of this kind so far. There is a `generation` for each generation that has trained.
  std::vector<Json> events(EventKind kind) const;
  // {"host": process id} of worker processes that train now.
  std::vector<std::pair<std::string, std::int64_t>> workers() const;

  // Throws Error with the job's output if the job ends, or the condition stays false for a long time, which begins
  // after `usual`.
  void wait_until(const std::function<bool()>& condition, const std::string& what,
                  std::chrono::duration<double> usual = {}) const;
  void wait_steps(std::size_t more) const;
  void run_for(std::chrono::duration<double> time) const;

 private:
  bool has_ended() const;
  std::string said() const;
  std::string last_error() const;  // of what the job said, without JSON

  Path folder_;
  job::JobFolder files_;
  pid_t process_ = 0;
};

}  // namespace dtrain::bench
