// The terminal's view of a job that another process coordinates.
#pragma once

#include <dtrain/base/reporter.hpp>

#include "job_life.hpp"
#include "log_source.hpp"

namespace dtrain::job {

class JobWatch {
 public:
  // Borrows the reporter. Lines that the coordinators' log has now are not shown later.
  JobWatch(const JobFolder& folder, Reporter& reporter);
  // Shows what the coordinators write to their log, and passes the user's stop signals on to them, until the job is
  // over. Returns its exit code. Throws RemoteError if the job ended without a record, and Interrupted if the user
  // stops a job whose coordinator does not answer.
  ExitCode until_over();

 private:
  bool show_new_lines();
  void pass_signals_on();

  const JobFolder folder_;
  Reporter& reporter_;
  LogSource log_;
  int signals_passed_on_ = 0;
};

}  // namespace dtrain::job
