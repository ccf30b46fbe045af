// An arbitrary program as the work of a job.
#pragma once

#include <chrono>

#include "config/run_spec.hpp"
#include "job_work.hpp"

namespace dtrain::job {

// Throws Error if the ranks cannot start the program. Does nothing where this machine does not know that: the ranks are
// on others, or start what was copied, prepared or completed for them.
void require_program(const external::Program& program, const config::JobOptions& job);

class ProgramWork final : public JobWork {
 public:
  ProgramWork(config::LaunchOptions options, external::Program program, const elastic::HostList& hosts,
              Reporter& reporter);
  // For a coordinator that takes over the job of this folder, whose events say when it began.
  ProgramWork(const config::ProgramSpec& spec, const JobFolder& folder, Reporter& reporter);

  const config::JobOptions& job() const override { return options_.job; }
  Json document() const override;
  int slots() const override { return 1; }
  bool runs_program() const override { return true; }
  bool uses_s3() const override { return false; }
  void adjust(elastic::Policy& policy) const override;
  void begin(int workers) override;
  void show(const Json& report) override;
  void catch_up() override {}  // show() only prints
  bool shows_output() const override { return !(options_.hides_stdout && options_.hides_stderr); }
  void show_output(const std::string& worker, OutputStream stream, std::string_view line) override;
  void end() override;
  void fail(const elastic::Failure* first, const std::string& reason, ExitCode code) override;
  std::string first_signal_words() const override;
  bool keeps() const override { return false; }
  std::string what_next() override;
  std::string lost() override { return {}; }  // the program saves by itself
  bool failed_to_save() const override { return false; }
  bool may_go_on() const override { return true; }  // if the program itself can
  FailureCode exit_code_of(const elastic::Failure& failure, ExitCode of_job) const override;

 private:
  void tell_start(const Json& report);
  void tell_failure(const Json& report);
  bool tell_json(const Json& event);  // prints the event with --json; false: there is no --json

  const config::LaunchOptions options_;
  const external::Program program_;
  Reporter& reporter_;
  std::size_t hosts_ = 0;  // at the start
  int workers_ = 0;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace dtrain::job
