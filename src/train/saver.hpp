// When and under which name a run's state becomes a checkpoint. Failure to write one never ends the training.
#pragma once

#include <dtrain/train/trainer.hpp>

namespace dtrain::train {

class Saver {
 public:
  // All must outlive this. Does nothing without options.checkpoint_prefix.
  Saver(const nn::Graph& graph, const backend::Executable& executable, const TrainerOptions& options,
        std::uint64_t samples, Observer& observer);

  // True if the checkpoint is on disk. A failure is reported as a warning that names the last good one.
  bool save(const Cursor& cursor);

 private:
  void write(const Cursor& cursor);
  Checkpoint snapshot(const Cursor& cursor) const;

  const nn::Graph& graph_;
  const backend::Executable& executable_;
  const TrainerOptions& options_;
  std::uint64_t samples_;
  Observer& observer_;
  Path last_good_;
};

}  // namespace dtrain::train
