// Where a worker begins: a job that it joins, or that lost all of its workers, may have trained already.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "train_run.hpp"

namespace dtrain::job {

// The checkpoint of --model-prefix that the run began with; nullopt: it began with none.
std::optional<train::CheckpointName> begin_of(const TrainRun& run);

// The checkpoints that a worker knows of when it starts.
struct SavedBefore {
  std::optional<train::CheckpointName> begin{};   // that the job began with
  std::optional<train::CheckpointName> latest{};  // the newest one that the coordinator heard of
  // Complete ones of the prefix, newest first; empty where later ones than `begin` may be those of another run.
  std::vector<train::CheckpointName> listed{};
};

// The checkpoints that the job itself saved, newest first. `latest` may be missing in the list, because it was removed,
// and newer ones may be there that the coordinator could not write down. Pure.
std::vector<train::CheckpointName> own_checkpoints(const SavedBefore& saved);

// Sets run.start to the newest checkpoint that the job saved, or to what it began with if it saved none. Damaged ones
// are skipped with a warning. Where that is not possible within `patience`, leaves run.start empty and says in
// run.lost_start why: then this worker needs the state of another one. run.remote must be set. Throws Error where the
// weights of --pretrained cannot be read.
void load_newest_start(TrainRun& run, const JobFolder& folder, Reporter& reporter,
                       std::chrono::milliseconds patience = std::chrono::seconds(5));

}  // namespace dtrain::job
