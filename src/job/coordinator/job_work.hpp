// What the workers of a job do, as far as their coordinator must know: dtrain's own training, or another program.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <dtrain/base/json.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/elastic/decide.hpp>

#include "config/job_options.hpp"
#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// Used by the coordinator's thread alone.
class JobWork {
 public:
  virtual ~JobWork() = default;
  virtual const config::JobOptions& job() const = 0;
  virtual Json document() const = 0;  // for the workers, and for a coordinator that takes over
  virtual int logical_shards() const { return 0; }
  // Workers of a host that joins by a line that does not say.
  virtual int slots() const { return 1; }
  virtual bool uses_s3() const { return false; }
  virtual void adjust(elastic::Policy&) const {}

  // The job begins with so many workers. Not called of a coordinator that takes over.
  virtual void begin(int workers) = 0;
  // What the rank that speaks for all reported.
  virtual void show(const Json& report) = 0;
  // Lines of the workers' output are wanted as they come; `worker`: its host, and its slot where that has several.
  virtual bool shows_output() const { return job().log_per_worker; }
  virtual void show_output(const std::string& worker, std::string_view line) = 0;
  // All workers are done.
  virtual void end() = 0;

  virtual std::string first_signal_words() const = 0;  // to the person who asked the job to stop
  // What is kept when the job stops early, so that the same command goes on from there.
  virtual bool keeps() const = 0;
  virtual std::string what_next() const = 0;
  // A stop on request is no failure even where nothing is kept.
  virtual bool may_go_on() const { return keeps(); }
  // Of a job that failed.
  virtual ExitCode exit_code_of(const elastic::Failure&, ExitCode of_job) const { return of_job; }
};

// `document` is what JobWork::document() gave another process of this job.
std::unique_ptr<JobWork> work_from_document(const Json& document, const JobFolder& folder, Reporter& reporter);

}  // namespace dtrain::job
