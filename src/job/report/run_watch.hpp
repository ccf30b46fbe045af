// What a person sees of a training run: how it begins, its log lines, JSON and TensorBoard events, how it ends.
#pragma once

#include <optional>

#include <dtrain/base/reporter.hpp>

#include "job/spec/train_run.hpp"
#include "train_events.hpp"
#include "train_log.hpp"

namespace dtrain::job {

// Borrows reporter and run. The same for one process and for the coordinator of many.
class RunWatch {
 public:
  RunWatch(Reporter& reporter, const TrainRun& run);
  // Who trains: device, network, G and V; with --json the start event. `workers`: of the start.
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
