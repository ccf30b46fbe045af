// The agent's side of the admission check: the prepare command, its success file, then the health check. The health
// check is a program of its own because a dead disk may hang it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/elastic/admission_check.hpp>
#include <dtrain/elastic/agent.hpp>

#include "background_command.hpp"

namespace dtrain::elastic {

struct AdmissionCheckSetup {
  std::string host;
  Path job_folder;
  std::vector<std::string> environment;  // for the prepare command and the check
  Path folder;                           // where both run
  std::string mark;                      // in their environment, to find their descendants
  std::vector<std::string> check;        // command line; empty: no check
  std::string check_input;               // one JSON document
};

// Everything happens on the loop's thread. The loop must outlive this. No answer comes after destruction.
class AdmissionCheck {
 public:
  AdmissionCheck(net::Loop& loop, AdmissionCheckSetup setting) : loop_(loop), setting_(std::move(setting)) {}
  // May be called again. While a check runs, a second call is answered by the first one's result.
  void run(const AdmissionCheckOptions& options, std::function<void(AdmissionCheckResult)> answer);
  // Its process, which the agent must not reap; 0: none.
  pid_t process() const { return command_ ? command_->id() : 0; }

 private:
  using Stage = AdmissionCheckResult::Stage;

  void prepare();
  void check();
  void prepared(const BackgroundCommand::Ended& ended);
  void checked(const BackgroundCommand::Ended& ended);
  void judge_clock();
  void start(std::vector<std::string> command, std::string input, std::chrono::milliseconds deadline,
             void (AdmissionCheck::*on_end)(const BackgroundCommand::Ended&));
  void fail(Stage stage, const std::string& reason, std::vector<std::string> last_lines);
  void finish();
  bool is_prepared_already();
  void write_success();

  net::Loop& loop_;
  const AdmissionCheckSetup setting_;
  AdmissionCheckOptions options_;
  AdmissionCheckResult result_;
  double clock_offset_ = 0;                           // seconds that this machine's clock is ahead of the coordinator's
  std::function<void(AdmissionCheckResult)> answer_;  // set while a check runs
  std::shared_ptr<BackgroundCommand> command_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace dtrain::elastic
