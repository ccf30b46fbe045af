// The records of a training in one process, in the folder that --job-dir names or beside its checkpoints: events.jsonl
// and steps.jsonl, as a job's coordinator writes them.
#pragma once

#include <functional>
#include <set>
#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/elastic/records.hpp>
#include <dtrain/train/report_json.hpp>

#include "config/train_options.hpp"
#include "job/spec/job_folder.hpp"
#include "steps_file.hpp"

namespace dtrain::job {

// Borrows the reporter. What the disk does not take is reported once and written later; the training goes on.
class RunRecords final : public train::EventObserver {
 public:
  // Makes the folder and holds its lock, so that no job begins there. The records of a run that is resumed go on.
  // Throws Error if a job or another training uses the folder.
  RunRecords(const JobFolder& folder, const config::TrainOptions& options, Reporter& reporter);
  void on_event(const train::ReportEvent& event) override;
  void end(const train::TrainResult& result);
  void fail(const Error& error);  // which ended the training

 private:
  void record(const std::function<void()>& write);
  void append(const Json& event);
  void finish(ExitCode code, const std::string& reason);

  Reporter& reporter_;
  FileLock lock_;
  StepsFile steps_;
  elastic::EventLog events_;
  std::set<std::string> complaints_;
};

// Before a run that is not resumed begins its records: moves those that a run with another --model-prefix left in the
// folder to one inside it. Nothing else may write them. A disk that does not let it is only reported.
void set_other_records_aside(const JobFolder& folder, const config::TrainOptions& options, Reporter& reporter);

// Writes train.toml, with the options that were chosen, for --config and for the board. `settled`: the options with
// which the run begins, without those that a stronger one dropped. A run that is resumed writes the file anew, for it
// may train for more epochs; those of the first start go to train.first.toml where they differ. A full disk is only
// reported.
void keep_configuration(const JobFolder& folder, const config::OptionSet& set, const config::TrainOptions& settled,
                        Reporter& reporter);

}  // namespace dtrain::job
