// The gate of elastic/gate.hpp, done by the agent of the host: the prepare command, its success file, then the health
// check, a program of its own that may hang on a dead disk without anybody else noticing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/elastic/agent.hpp>
#include <dtrain/elastic/gate.hpp>

#include "background_task.hpp"

namespace dtrain::elastic {

struct GateSetting {
  std::string host;
  Path job_folder;
  std::vector<std::string> environment;  // of the prepare command and the check
  Path folder;                           // where they run
  std::string mark;                      // in their environment too
  std::vector<std::string> check;        // its command line; empty: no check
  std::string check_input;               // JSON, one document
};

// Must not outlive the loop. Destroyed while it runs: the answer does not come.
class GateKeeper {
 public:
  GateKeeper(net::Loop& loop, GateSetting setting) : loop_(loop), setting_(std::move(setting)) {}
  // Call again once it answered, or while it is at it: then the first answer counts for both.
  void run(const GateOptions& options, std::function<void(GateResult)> answer);
  // Its process, which nobody else may reap; 0: none.
  pid_t process() const { return task_ ? task_->id() : 0; }

 private:
  void prepare();
  void check();
  void prepared(const BackgroundTask::Ended& ended);
  void checked(const BackgroundTask::Ended& ended);
  void judge_clock();
  void start(std::vector<std::string> command, std::string input, std::chrono::milliseconds deadline,
             void (GateKeeper::*on_end)(const BackgroundTask::Ended&));
  void fail(const std::string& stage, const std::string& reason, std::vector<std::string> last_lines);
  void finish();
  bool is_prepared_already();
  void write_success();

  net::Loop& loop_;
  const GateSetting setting_;
  GateOptions options_;
  GateResult result_;
  double clock_offset_ = 0;                 // seconds that this machine's clock is ahead of the coordinator's
  std::function<void(GateResult)> answer_;  // set: it is at it
  std::shared_ptr<BackgroundTask> task_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace dtrain::elastic
