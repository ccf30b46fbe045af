// One worker as its agent sees it: process, socket, output, end. Everything happens on the loop's thread; callbacks
// keep the object alive until the process has ended.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/process.hpp>
#include <dtrain/elastic/agent.hpp>
#include <dtrain/net/channel.hpp>

#include "wire.hpp"
#include "worker_output.hpp"

namespace dtrain::elastic {

class WorkerProcess : public std::enable_shared_from_this<WorkerProcess> {
 public:
  struct Events {
    std::function<void(std::string message)> on_message;  // from the worker to the coordinator
    std::function<void(OutputStream stream, std::string lines)> on_output;
    // Called once, last: the process has ended, its messages and output were passed on, its descendants are being
    // killed.
    std::function<void(Exited)> on_exit;
  };

  // Time after the end of the process for the rest of its messages and output.
  static constexpr std::chrono::milliseconds kDrainTime{1000};

  WorkerProcess(net::Loop& loop, const WorkerJob& job, const Path& log, std::chrono::milliseconds drain = kDrainTime)
      : loop_(loop), job_(job), drain_(drain), output_(log, program_starts(job)) {}
  // `mark` is put into its environment, which descendants inherit. Throws Error when the process does not start.
  void start(const std::vector<std::string>& command, std::vector<std::string> environment, const Path& folder,
             const std::string& mark, Events events);

  pid_t id() const { return process_; }
  void send(std::string message);
  // The last lines of its output, with what is in the pipes now.
  std::vector<std::string> last_lines();
  // Closes its connection: it has no coordinator any more, saves its state with the other workers, and ends.
  void hang_up();
  // SIGTERM to its process group; the worker may ignore it.
  void ask_to_end();
  // SIGKILL to it and its descendants. dump_stack: its log gets the states and stacks of its threads first.
  void kill(bool dump_stack);

 private:
  void watch_output(OutputStream stream, FileDescriptor pipe);
  bool read_output(OutputStream stream, int pipe);
  void watch_exit();
  void look_again_later();
  bool reap();
  void on_channel_closed();
  void finish_if_over();
  void finish();
  void log(const std::string& line);

  net::Loop& loop_;
  WorkerJob job_;
  const std::chrono::milliseconds drain_;
  WorkerOutput output_;
  std::string mark_;
  Events events_;
  pid_t process_ = 0;
  std::shared_ptr<net::Channel> channel_;
  std::array<std::weak_ptr<FileDescriptor>, 2> pipes_;  // [stream], until it has ended
  std::array<bool, 2> open_{true, true};                // [stream]: its end was not read yet
  Exited exited_;
  bool reaped_ = false, channel_closed_ = false, finished_ = false;
};

}  // namespace dtrain::elastic
