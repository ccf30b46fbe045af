// What a resumed run has from its checkpoint, because with another choice it would not be the same run.
#pragma once

#include <dtrain/data/remote.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "config/train_options.hpp"

namespace dtrain::job {

// With --resume: takes seed, batch and shards of the checkpoint unless the user chose them; a different choice throws
// UsageError. --batch-size of a job is exempt: it counts for the initial hosts, which may be others now; where workers
// have batches of their own, theirs is taken. The order of the samples is taken as well, and inside an epoch no other
// one is possible. Pixels are prepared as before: take_preprocessing() takes what the user did not choose.
void agree_with_checkpoint(const train::Checkpoint& start, const config::OptionSet& set, config::TrainOptions& options);

// What --batch-size would make of a resumed job's step, whose samples stay those of the checkpoint; empty where it
// would change nothing.
std::string unheeded_batch(const config::OptionSet& set, const config::TrainOptions& options);

// Throws DataError where the training records are not those that the checkpoint needs, as far as that is known here: of
// data behind URLs, or without an index, it is not.
void agree_on_records(const train::Checkpoint& start, const Path& records, std::int64_t num_examples);

// Forgets the best epoch of a resumed run where it was found on other validation data, or on other views of them. The
// trainer does the same, and says so.
void agree_on_validation(train::Checkpoint& start, const Path& records, int views, const data::RemoteOptions& remote);

}  // namespace dtrain::job
