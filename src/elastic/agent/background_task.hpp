// A command that the agent runs beside its workers, to its end or to its deadline. Everything happens on the loop's
// thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/process.hpp>
#include <dtrain/net/channel.hpp>

#include "worker_output.hpp"

namespace dtrain::elastic {

class BackgroundTask : public std::enable_shared_from_this<BackgroundTask> {
 public:
  struct Command {
    Spawn spawn;          // input and output are the task's business
    std::string input{};  // what its standard input holds
    std::string mark{};   // "NAME=value", in its environment and so in that of its descendants
    std::chrono::milliseconds deadline{};
  };
  struct Ended {
    int exit_code = 0;
    int signal = 0;
    bool in_time = true;  // false: it was ended at its deadline
    std::vector<std::string> last_lines;
    double seconds = 0;
  };

  // What it prints is appended to the log.
  BackgroundTask(net::Loop& loop, const Path& log) : loop_(loop), output_(log) {}
  // Throws Error when it does not start. on_end: once, unless that threw.
  void start(Command command, std::function<void(Ended)> on_end);
  pid_t id() const { return process_; }  // 0: it does not run

 private:
  void watch_output(FileDescriptor pipe);
  void look();
  void end_overdue();
  void finish(int status);

  net::Loop& loop_;
  WorkerOutput output_;
  std::string mark_;
  std::function<void(Ended)> on_end_;
  std::chrono::steady_clock::time_point begun_{}, deadline_{};
  pid_t process_ = 0;
  bool in_time_ = true, output_ended_ = false, finished_ = false;
};

// "ended with exit code 3", "was killed by signal 9 (SIGKILL)", "did not end within 60 s"; empty: it ended well.
std::string describe_end(const BackgroundTask::Ended& ended);

}  // namespace dtrain::elastic
