// The work of a job as its coordinator sees it: training by dtrain itself, or another program.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <dtrain/base/json.hpp>
#include <dtrain/base/output_stream.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/elastic/policy.hpp>

#include "config/job_options.hpp"
#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// Used by the coordinator's thread alone.
class JobWork {
 public:
  virtual ~JobWork() = default;
  virtual const config::JobOptions& job() const = 0;
  virtual Json document() const = 0;  // for the workers, and for a coordinator that takes over
  // Number of workers of a newcomer whose host line gives none.
  virtual int slots() const = 0;
  virtual bool runs_program() const = 0;                   // whether its workers are programs of another framework
  virtual bool uses_s3() const = 0;                        // whether its workers read s3://
  virtual void adjust(elastic::Policy& policy) const = 0;  // what this work wants otherwise than the options of the job

  // Called when the job begins with this number of workers; not called for a coordinator that takes over.
  virtual void begin(int workers) = 0;
  // Shows a report of the rank that reports for all.
  virtual void show(const Json& report) = 0;
  // Called several times a second: writes what show() could not write. Throws Error if that still fails.
  virtual void catch_up() = 0;
  // Whether output of the workers is shown as it comes, where somebody reads it. `worker`: its host, with its slot if
  // the host has several.
  virtual bool shows_output() const = 0;
  virtual void show_output(const std::string& worker, OutputStream stream, std::string_view line) = 0;
  // Called when all workers are done.
  virtual void end() = 0;
  // Called when the job failed, with its exit code and, if it is known, what failed first.
  virtual void fail(const elastic::Failure* first, const std::string& reason, ExitCode code) = 0;

  virtual std::string first_signal_words() const = 0;  // shown after the first stop signal
  // Whether a job that stops early keeps enough for the same command to continue.
  virtual bool keeps() const = 0;
  virtual std::string what_next() = 0;
  // What was to be kept and is not saved, and why if that is known; empty: nothing is lost.
  virtual std::string lost() = 0;
  // Whether that is because the last save failed.
  virtual bool failed_to_save() const = 0;
  // A stop on request is no failure even if nothing is kept.
  virtual bool may_go_on() const = 0;
  // The exit code of a failed job.
  struct FailureCode {
    ExitCode code = ExitCode::failed;
    bool is_of_program = false;  // the code is that of the program
  };
  virtual FailureCode exit_code_of(const elastic::Failure& failure, ExitCode of_job) const = 0;
};

}  // namespace dtrain::job
