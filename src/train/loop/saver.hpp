// When and under which name a run's state becomes a checkpoint. Failure to write one never ends the training.
#pragma once

#include <dtrain/train/trainer.hpp>

#include "run_state.hpp"

namespace dtrain::train {

// Trainer's thread only. The state is copied, then written in the foreground, so a step never changes what is being
// written. A failure to write becomes a warning that names the last good checkpoint; files appear by a rename, so a
// crash leaves the old checkpoint or the new one.
class Saver {
 public:
  // All must outlive this.
  Saver(const nn::Graph& graph, const backend::Executable& executable, const TrainerOptions& options,
        std::uint64_t samples);

  // Saves the executable's state, which stands at run.cursor. Returns what to report: the files, or a warning that
  // names the last good checkpoint. Nothing without options.checkpoint_prefix.
  std::vector<ReportEvent> save(const RunState& run, std::uint64_t generation);
  // Whether this process saved the state of this cursor last.
  bool has_saved(const Cursor& cursor) const { return saved_ == cursor; }

 private:
  void write(const RunState& run, std::uint64_t generation, std::vector<ReportEvent>& reports);
  Checkpoint snapshot(const RunState& run, std::uint64_t generation) const;

  const nn::Graph& graph_;
  const backend::Executable& executable_;
  const TrainerOptions& options_;
  std::uint64_t samples_;
  Path last_good_;
  std::optional<Cursor> saved_;
};

}  // namespace dtrain::train
