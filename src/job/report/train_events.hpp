// The run as JSON lines on stdout (schema dtrain.train/1) and as TensorBoard events.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/reporter.hpp>
#include <dtrain/base/step_numbers.hpp>
#include <dtrain/train/report_json.hpp>
#include <dtrain/train/tensorboard.hpp>
#include <dtrain/train/trainer.hpp>

#include "config/data_options.hpp"

namespace dtrain::job {

// One object a line: {"schema", "event": "step" | "epoch" | "evaluation" | "checkpoint" | "shards" |
// "warning" | "lost", ...}.
class JsonEvents final : public train::EventObserver {
 public:
  explicit JsonEvents(Reporter& reporter) : reporter_(reporter) {}
  void on_event(const train::ReportEvent& event) override;

 private:
  Reporter& reporter_;
};

// Scalars by the number of the step in the run; the first batch as an image. What the disk does not take is reported
// once and written later; the training goes on. Borrows data and reporter.
class BoardEvents final : public train::IgnoringObserver {
 public:
  // `resumed`: the first step replaces it and what follows it in the folder's older files. `earlier`: the numbers of
  // the steps that other processes of the run reported; without them, all epochs are taken to have equally many steps.
  // `begin`: the number of the step that the first one of this process follows on; an evaluation that is made up for
  // before that step stands there.
  BoardEvents(const Path& folder, const config::DataOptions& data, bool resumed, Reporter& reporter,
              StepNumbers earlier = {}, std::uint64_t begin = 0);
  // This run begins at its first step: it goes on from no other in the folder, and replaces what follows that step too.
  void begin_anew() {
    numbers_ = {};
    restarts_ = true;
  }
  void on_first_batch(const data::Batch& batch) override;
  void on_step(const train::StepReport& report) override;
  void on_epoch(const train::EpochReport& report) override;
  void on_evaluation(const train::EvaluationReport& report) override;

 private:
  void flush();
  // Where to draw what is known of the epoch as a whole.
  std::uint64_t end_of(std::uint32_t epoch) const;

  train::EventWriter writer_;
  const config::DataOptions& data_;
  Reporter& reporter_;
  bool restarts_;
  std::set<std::string> complaints_{};
  StepNumbers numbers_;
  const std::uint64_t begin_;
  std::uint64_t step_ = 0;  // number of the last step; 0: none was reported
};

// Forwards every call to several observers, which it borrows.
class Observers final : public train::Observer {
 public:
  void add(train::Observer& observer) { observers_.push_back(&observer); }
  void on_first_batch(const data::Batch& batch) override;
  void on_step(const train::StepReport& report) override;
  void on_epoch(const train::EpochReport& report) override;
  void on_evaluation(const train::EvaluationReport& report) override;
  void on_checkpoint(const Path& path) override;
  void on_shards(const train::ShardsReport& report) override;
  void on_note(const std::string& text) override;
  void on_warning(const std::string& text) override;
  void on_lost(const std::string& text) override;

 private:
  std::vector<train::Observer*> observers_;
};

// The first images of a batch beside each other, in a near square, with mean and deviation undone.
data::Image picture_of(const data::Batch& batch, const config::DataOptions& data);

}  // namespace dtrain::job
