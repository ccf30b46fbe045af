// What stands between a training run and the files of others under its --model-prefix.
#pragma once

#include <optional>

#include <dtrain/base/reporter.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "config/train_options.hpp"
#include "job_folder.hpp"

namespace dtrain::job {

// Before anything is trained: refuses to train over checkpoints that the run does not continue, and over parameters in
// MXNet's format that it does not begin with (--force does both), finds out whether checkpoints can be written, removes
// temporary files of killed processes. With --dry-run it only refuses, and makes no file. While the result lives, no
// other run of this machine writes under the prefix; nullopt where no lock is possible: behind a URL, or on the disk of
// another machine. Throws UsageError, Error.
std::optional<FileLock> claim_prefix(const config::TrainOptions& options, const train::SharedStore& store,
                                     Reporter& reporter);

// The lock alone, for a command that writes one checkpoint under the prefix that this option of it gives; nullopt where
// no lock is possible. Throws Error if a run writes there.
std::optional<FileLock> lock_prefix(const Path& prefix, const std::string& option);

// The lock of a prefix whose run goes on under another coordinator; nullopt where no lock is possible, or where the
// earlier coordinator still holds it.
std::optional<FileLock> lock_prefix_again(const config::TrainOptions& options);

}  // namespace dtrain::job
