// The output of a training run for the user: its beginning, log lines, JSON and TensorBoard events, and its end.
#pragma once

#include <optional>

#include <dtrain/base/reporter.hpp>
#include <dtrain/train/run_ends.hpp>

#include "job/spec/train_run.hpp"
#include "train_events.hpp"
#include "train_log.hpp"

namespace dtrain::job {

// Shows data, network, batch and device, with --verbose also G, V and libraries. `workers`: number at the start.
void show_opening(const TrainRun& run, int workers, Reporter& reporter);

// Knows the best validation of the run, that of before its start included.
class BestWatch final : public train::IgnoringObserver {
 public:
  explicit BestWatch(const train::BestEpoch& best) : best_(best) {}
  void on_evaluation(const train::EvaluationReport& report) override { best_ = train::after_evaluation(best_, report); }
  const train::BestEpoch& best() const { return best_; }

 private:
  train::BestEpoch best_;
};

// Borrows reporter and run. The same for one process and for the coordinator of many.
class RunWatch {
 public:
  // `steps`: steps.jsonl of the job, with what earlier processes reported; nullopt: the run is of this one alone.
  RunWatch(Reporter& reporter, const TrainRun& run, const std::optional<Path>& steps = {});
  // show_opening(); with --json also the start event.
  void begin(int workers);
  // Of a run that is complete: its last line, or with --json the result event.
  void end(const train::TrainResult& result);
  Observers& observers() { return observers_; }

 private:
  Json start_event(int workers) const;
  std::optional<Path> checkpoint_of(const train::TrainResult& result) const;
  Json result_event(const train::TrainResult& result, bool has_best) const;

  Reporter& reporter_;
  const TrainRun& run_;
  TrainLog log_;
  BestWatch best_;
  bool saw_begin_ = false;  // a coordinator that took over did not, and missed evaluations
  JsonEvents json_;
  std::optional<BoardEvents> board_;
  Observers observers_;
};

}  // namespace dtrain::job
