// A command that the agent runs beside its workers, until it ends or its deadline passes. Everything happens on the
// loop's thread; callbacks keep the command alive until it ends.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/process.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/net/channel.hpp>

#include "worker_output.hpp"

namespace dtrain::elastic {

class BackgroundCommand : public std::enable_shared_from_this<BackgroundCommand> {
 public:
  struct Options {
    Spawn spawn;          // input and output are set by start()
    std::string input{};  // content of its standard input
    std::string mark{};   // "NAME=value" in its environment, which its descendants inherit
    std::chrono::milliseconds deadline{};
  };
  struct Ended {
    int exit_code = 0;
    int signal = 0;
    bool in_time = true;  // false: killed at its deadline
    std::vector<std::string> last_lines;
    double seconds = 0;
  };

  // Output is appended to the log.
  BackgroundCommand(net::Loop& loop, const Path& log) : loop_(loop), output_(log) {}
  ~BackgroundCommand();  // kills it, if it still runs
  // Throws Error when the command does not start. Otherwise on_end is called once.
  void start(Options options, std::function<void(Ended)> on_end);
  pid_t id() const { return process_; }  // 0: it does not run

 private:
  void watch_output(FileDescriptor pipe);
  void look();
  void end_overdue();
  void finish(const ProcessEnd& end);

  net::Loop& loop_;
  WorkerOutput output_;
  std::string mark_;
  std::function<void(Ended)> on_end_;
  std::chrono::steady_clock::time_point begun_{}, deadline_{};
  pid_t process_ = 0;
  bool in_time_ = true, output_ended_ = false, finished_ = false;
};

// "ended with exit code 3", "was killed by signal 9 (SIGKILL)", "did not end within 60 s"; empty: success.
std::string describe_end(const BackgroundCommand::Ended& ended);

}  // namespace dtrain::elastic
