// The learning rates' schedule beside the number of epochs.
#pragma once

#include <string>

#include "config/train_options.hpp"

namespace dtrain::config {

// Fits a warm-up that comes from a recipe or from a file, which knew another schedule or another number of epochs, to
// the run: one-cycle takes none, and a warm-up that would fill the whole of a falling schedule takes half of it. One
// from a flag or from the environment stays as it is. Returns what to say about that; empty: nothing.
std::string settle_schedule(const OptionSet& set, TrainOptions& options);

// Whether two runs may have different warm-ups that neither user chose: each is fitted to the number of epochs, by
// settle_schedule() or by --finetune, or left out for one-cycle. Both schedules have their total_epochs.
bool warmups_may_differ(const OptionSet& set, const nn::Schedule& one, const nn::Schedule& other);

// Before the values of files become flags of a run that only then knows its number of epochs: settle_schedule() fits a
// file's warm-up there too.
void mark_warmup_of_file(OptionSet& set);

// Throws SettingError where the schedule cannot be. Nothing depends on the rates of a run that has no epochs, or that
// measures speed alone.
void check_schedule(const TrainOptions& options);

}  // namespace dtrain::config
