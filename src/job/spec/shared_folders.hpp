// Whether the machines of a job see the same folders: checkpoints that a host saves on its own disk are lost to the
// others and to --resume.
#pragma once

#include <chrono>
#include <string>

#include <dtrain/train/checkpoint.hpp>

#include "config/run_spec.hpp"
#include "config/train_options.hpp"
#include "job_folder.hpp"

namespace dtrain::job {

// On a host of the job, before it trains: throws Error unless the folder of --model-prefix is the one in which the
// coordinator's machine wrote this run's token, and files can be made there. A folder that does not answer proves
// nothing and passes. `patience`: other machines may see a new file late. A spec without a token passes.
void require_shared_prefix(const config::TrainSpec& spec,
                           std::chrono::milliseconds patience = std::chrono::seconds(10));

// On the machine of a new agent: throws RemoteError that names the host unless the folder has the coordinator.json of
// the job with this token. One that cannot be read proves nothing and passes.
void require_shared_job_folder(const std::string& host, const JobFolder& folder, const std::string& token,
                               std::chrono::milliseconds patience = std::chrono::seconds(10));

// With --resume in a job: throws UsageError where `latest_checkpoint` of the job folder names a checkpoint of the
// prefix, and neither that nor a later one is there. Without it, the run would train again what is trained.
void require_latest_checkpoint(const config::TrainOptions& options, const train::SharedStore& store,
                               std::chrono::milliseconds patience = std::chrono::seconds(5));

// Throws UsageError where each host would save checkpoints in its own copy of the current folder (--sync-dst-dir).
void refuse_prefix_in_copies(const config::TrainOptions& options);

}  // namespace dtrain::job
