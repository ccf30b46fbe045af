// The output of a training run for the user: its beginning, log lines, JSON and TensorBoard events, and its end.
#pragma once

#include <optional>

#include <dtrain/base/reporter.hpp>

#include "job/spec/train_run.hpp"
#include "train_events.hpp"
#include "train_log.hpp"

namespace dtrain::job {

// Shows data, network, batch and device, with --verbose also G, V and libraries. `workers`: number at the start.
void show_opening(const TrainRun& run, int workers, Reporter& reporter);

// Borrows reporter and run. The same for one process and for the coordinator of many.
class RunWatch {
 public:
  RunWatch(Reporter& reporter, const TrainRun& run);
  // show_opening(); with --json also the start event.
  void begin(int workers);
  void end(const train::TrainResult& result);
  Observers& observers() { return observers_; }

 private:
  Json start_event(int workers) const;

  Reporter& reporter_;
  const TrainRun& run_;
  TrainLog log_;
  JsonEvents json_;
  std::optional<BoardEvents> board_;
  Observers observers_;
};

}  // namespace dtrain::job
