// What a worker can begin with. It may wait for long before it is a member, and others train and save meanwhile.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>

#include "job/spec/job_folder.hpp"
#include "job/spec/newest_start.hpp"

namespace dtrain::job {

class StartFinder {
 public:
  // All must outlive this; run.remote must be set before the first call.
  StartFinder(TrainRun& run, JobFolder folder, Reporter& reporter)
      : run_(run), folder_(std::move(folder)), reporter_(reporter) {}

  // Sets run.start or run.lost_start, as load_newest_start() does.
  void find() {
    names_ = saved_names();
    run_.start.reset();
    run_.lost_start.reset();
    load_newest_start(run_, folder_, reporter_);
  }

  // TrainerOptions::find_start. Reads a checkpoint only where others are there than at the last call, or none could be
  // read then.
  std::optional<train::RunStart> find_again() {
    const bool is_new = run_.lost_start || !names_ || saved_names() != names_;
    if (!is_new) return std::nullopt;
    find();
    return train::RunStart{.checkpoint = run_.start ? &*run_.start : nullptr, .lost = run_.lost_start};
  }

 private:
  // What the job has saved, as far as this worker sees; nullopt: it cannot look.
  std::optional<std::vector<std::string>> saved_names() const {
    std::vector<std::string> names;
    if (!run_.options.model_prefix) return names;
    try {
      names.push_back(file_exists(folder_.latest()) ? read_file(folder_.latest()) : "");
      for (const auto& name : train::list_checkpoints(*run_.options.model_prefix, run_.remote.store)) {
        names.push_back(name.stem());
      }
      return names;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  TrainRun& run_;
  const JobFolder folder_;
  Reporter& reporter_;
  std::optional<std::vector<std::string>> names_;  // at the last call
};

}  // namespace dtrain::job
