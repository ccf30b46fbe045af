// One worker, seen by its agent: the process, its socket, its output, its end. Everything happens on the loop's thread.
#pragma once

#include <sys/types.h>

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
    std::function<void(std::string lines)> on_output;
    // Once, last: the process is gone, all that it said and printed was handed on, and what it started is being killed.
    std::function<void(Exited)> on_exit;
  };

  WorkerProcess(net::Loop& loop, const WorkerJob& job, const Path& log) : loop_(loop), job_(job), output_(log) {}
  // `mark`: in its environment, and so in that of its descendants. Throws Error when it does not start.
  void start(const std::vector<std::string>& command, std::vector<std::string> environment, const Path& folder,
             const std::string& mark, Events events);

  pid_t id() const { return process_; }
  void send(std::string message);
  // SIGTERM to its process group: a wish.
  void ask_to_end();
  // SIGKILL to it and all that it started; with dump_stack its log gets its threads' states and stacks first.
  void kill(bool dump_stack);

 private:
  void watch_output(FileDescriptor pipe);
  bool read_output(int pipe);
  void watch_exit();
  void look_again_later();
  bool reap();
  void on_channel_closed();
  void finish_if_over();
  void finish();
  void log(const std::string& line);

  net::Loop& loop_;
  WorkerJob job_;
  WorkerOutput output_;
  std::string mark_;
  Events events_;
  pid_t process_ = 0;
  std::shared_ptr<net::Channel> channel_;
  Exited exited_;
  bool reaped_ = false, output_ended_ = false, channel_closed_ = false, finished_ = false;
};

}  // namespace dtrain::elastic
