// What stands between a training run and the files of others under its --model-prefix.
#pragma once

#include <optional>
#include <string>

#include <dtrain/base/reporter.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "config/train_options.hpp"
#include "job_folder.hpp"

namespace dtrain::job {

struct PrefixClaim {
  std::optional<FileLock> lock;  // none for a job on other machines, where the file system keeps no locks
  std::string token;             // what owner_file() holds while the run lasts; empty: it could not be written
};

// Before anything is trained: refuses to train over checkpoints that the run does not continue, and over parameters in
// MXNet's format that it does not begin with (--force does both), finds out whether checkpoints can be written, removes
// temporary files of killed processes. With --dry-run it only refuses, and makes no file. While the result lives, no
// other run writes under the prefix that sees the same file; nullopt behind a URL, and for --test-io. A run is also
// refused while a job goes on that began with this prefix, whichever machine coordinates it now. Throws UsageError,
// Error.
std::optional<PrefixClaim> claim_prefix(const config::TrainOptions& options, const train::SharedStore& store,
                                        Reporter& reporter);

// The lock alone, without a change of the owner, for a command that writes one checkpoint under the prefix that this
// option of it gives; nullopt where no lock is possible. Throws Error if a run writes there.
std::optional<FileLock> lock_prefix(const Path& prefix, const std::string& option);

// The lock of a prefix whose run goes on under another coordinator of this machine; nullopt where no lock is possible,
// or where the earlier coordinator still holds it. On other machines the job folder alone says that the run goes on: a
// file server that does not answer must not hold up a coordinator that takes over.
std::optional<FileLock> lock_prefix_again(const config::TrainOptions& options);

}  // namespace dtrain::job
