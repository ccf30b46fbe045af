// What the coordinator keeps of the reports of a training run: for the result line, for workers that start after all
// others died, and for how the job ends.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <dtrain/train/report_json.hpp>

#include "job/spec/job_folder.hpp"

namespace dtrain::job {

// Writes `latest_checkpoint` of the job folder. The coordinator's thread only.
class LastReports final : public train::IgnoringObserver {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `counts_steps`: a checkpoint holds all steps that were reported before it. With parameter servers it does not.
  LastReports(const JobFolder& folder, std::optional<Path> prefix, bool counts_steps)
      : folder_(folder), prefix_(std::move(prefix)), counts_steps_(counts_steps) {}

  // A new job begins, with this checkpoint or with none. Not called for a coordinator that takes over: that reads what
  // the one before it wrote.
  void begin(const std::optional<train::CheckpointName>& start);
  // Every step as it is reported, also one that is trained again.
  void on_trained(const train::StepReport& report);

  void on_evaluation(const train::EvaluationReport& report) override { evaluation = report; }
  // Throws Error if the folder does not take the name; catch_up() writes it later.
  void on_checkpoint(const Path& file) override;
  void on_lost(const std::string& text) override { unsaved_ = text; }
  // Writes what could not be written, at most once a second. Throws Error.
  void catch_up(Time now);

  // Whether there is a checkpoint to go on from.
  bool has_checkpoint();
  // What a run that is over has trained and not saved; empty: nothing.
  std::string lost();
  // What the last save could not write and why; empty: it did.
  const std::string& unsaved() const { return unsaved_; }

  std::optional<train::EvaluationReport> evaluation;

 private:
  const Path& newest();
  bool is_older(const Path& manifest, const Path& other) const;
  void write();

  const JobFolder folder_;
  const std::optional<Path> prefix_;
  const bool counts_steps_;
  bool is_known_ = false;  // newest_ is what the job folder had at first, or newer
  bool is_written_ = true;
  Path newest_;  // manifest; empty: none
  Time next_write_{};
  std::string unsaved_;
  std::optional<std::pair<std::uint32_t, std::uint64_t>> trained_;  // epoch and steps of it
};

}  // namespace dtrain::job
