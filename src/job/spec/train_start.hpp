// The start of a training run: fresh weights, the checkpoint of an epoch, or the newest undamaged one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/reporter.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "config/train_options.hpp"

namespace dtrain::job {

struct Start {
  train::Checkpoint checkpoint;
  Path file;  // the manifest that --resume chose; empty with --load-epoch
};

// Throws UsageError for options that a start of the job again would contradict: after a loss, `starter` continues the
// job from its newest checkpoint.
void refuse_other_starts(const config::TrainOptions& options, std::string_view starter);

// Drops the way to begin that comes from the weaker source: of --load-epoch and --resume, and of --load-epoch,
// --pretrained and --finetune. Returns the names of the options that it dropped.
std::vector<std::string> let_stronger_start_decide(const config::OptionSet& set, config::TrainOptions& options);
// The same for the options of the set: those that it drops count as not chosen any more.
void drop_weaker_starts(config::OptionSet& set, config::TrainOptions& options);

// Lets the stronger start decide, and makes --load-epoch best a number. Throws DataError.
void settle_load_epoch(const config::OptionSet& set, const train::SharedStore& store, config::TrainOptions& options);

// nullopt: fresh weights. With --resume, damaged checkpoints are reported and skipped; if there is none at all the
// start is fresh, and if all are damaged it throws DataError. It also throws that where the user gave no data and the
// recipe's are not there, though the options of the run before are.
std::optional<Start> find_start(const config::TrainOptions& options, const config::OptionSet& set,
                                const train::SharedStore& store, Reporter& reporter);

// The options of optimizer and schedule by which a resumed run learns in another way than the checkpoint did, though
// the user did not choose them: those of the first run were left out. Silent about what cannot be compared, such as the
// rates of two optimizers, or a warm-up that is fitted to the run. The number of epochs is among them. Pure.
struct OtherRate {
  std::string option, saved, mine;  // texts of the value; empty: none
  friend bool operator==(const OtherRate&, const OtherRate&) = default;
};
std::vector<OtherRate> other_rates(const train::Checkpoint& start, const config::OptionSet& set,
                                   const config::TrainOptions& options);
// Warns of these and of other_options(), and notes where another number of epochs that the user chose moves the rate.
void warn_of_other_rates(const train::Checkpoint& start, const config::OptionSet& set,
                         const config::TrainOptions& options, Reporter& reporter);

// The checkpoint's graph unless the user chose one; a chosen graph must be the same network. Where the user chose
// neither images nor classes, the options get those of the checkpoint. Layers learn as --freeze says, else as they did
// when the checkpoint was saved, or as the network's file says; a run that is resumed freezes no others.
nn::Graph graph_of_run(const std::optional<train::Checkpoint>& start, const config::OptionSet& set,
                       config::TrainOptions& options, Reporter& reporter);

// Adds missing optimizer state, which begins at zero: imported weights have none, and another rule needs other slots.
// The updates count from there. Returns true if it did.
bool complete_optimizer_state(train::Checkpoint& start, const config::TrainOptions& options);
// The same with reports. An average of weights that the checkpoint has does not warm up again.
void fit_optimizer_state(train::Checkpoint& start, config::TrainOptions& options, Reporter& reporter);

}  // namespace dtrain::job
