// A training run as the work of a job.
#pragma once

#include <dtrain/train/report_json.hpp>

#include "job/report/run_watch.hpp"
#include "job/report/steps_file.hpp"
#include "job/spec/train_run.hpp"
#include "job_work.hpp"
#include "last_reports.hpp"

namespace dtrain::job {

class TrainWork final : public JobWork {
 public:
  TrainWork(TrainRun run, const JobFolder& folder, Reporter& reporter);

  const config::JobOptions& job() const override { return run_.options.job; }
  Json document() const override { return to_json(config::make_run_spec(spec_of(run_))); }
  int slots() const override;
  bool runs_program() const override { return false; }
  bool uses_s3() const override { return job::uses_s3(run_); }
  void adjust(elastic::Policy& policy) const override;
  void begin(int workers) override;
  void show(const Json& report) override;
  void catch_up() override { last_.catch_up(std::chrono::steady_clock::now()); }
  bool shows_output() const override { return job().log_per_worker; }
  void show_output(const std::string& worker, OutputStream stream, std::string_view line) override;
  void end() override;
  // The error that ends the command says why.
  void fail(const elastic::Failure*, const std::string&, ExitCode) override {}
  std::string first_signal_words() const override;
  bool keeps() const override { return run_.options.model_prefix.has_value(); }
  std::string what_next() override;
  bool may_go_on() const override { return keeps(); }
  FailureCode exit_code_of(const elastic::Failure&, ExitCode of_job) const override { return {of_job}; }
  std::string lost() override { return last_.lost(); }
  bool failed_to_save() const override { return !last_.unsaved().empty(); }

 private:
  const TrainRun run_;
  const JobFolder folder_;
  Reporter& reporter_;
  RunWatch watch_;
  LastReports last_;
  StepsFile steps_;
  train::OnlyNews news_;
};

}  // namespace dtrain::job
