// A training run with all decisions made: final options, agreement with the checkpoint, network, files. The process
// that the user started makes them once, with settle_run(); workers of a job get the run as a document.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <dtrain/base/reporter.hpp>
#include <dtrain/elastic/membership.hpp>
#include <dtrain/train/trainer.hpp>

#include "config/run_spec.hpp"
#include "config/train_sources.hpp"
#include "job_folder.hpp"

namespace dtrain::job {

struct TrainRun {
  config::TrainOptions options;
  std::optional<train::Checkpoint> start;
  Path start_file;                             // manifest of `start` if --resume chose it; otherwise empty
  std::optional<train::LostStart> lost_start;  // of a worker that cannot read the newest checkpoint of its job
  nn::Graph graph;
  config::TrainSources sources;
  std::unique_ptr<backend::Backend> backend;
  backend::DType dtype = backend::DType::float32;
  // Access to files behind URLs: data and checkpoints.
  data::RemoteOptions remote{};
  std::optional<FileLock> prefix_lock{};  // of the process that settled the run
  std::string prefix_token{};             // as TrainSpec has it
};

// The store works on after a stop signal, so that the last step and checkpoint can be finished. `delegated`:
// credentials of a worker.
data::RemoteOptions remote_of_run(Reporter& reporter, std::shared_ptr<const net::DelegatedCredentials> delegated = {});
// run.remote with the cache that the options choose.
data::RemoteOptions with_cache(const TrainRun& run);
// Whether any file of the run is behind s3://.
bool uses_s3(const TrainRun& run);

// What travels of the run; looks at its files.
config::TrainSpec spec_of(const TrainRun& run);
// All but the checkpoint, for worker `slot` of a host.
TrainRun run_of(const config::TrainSpec& spec, int slot = 0);
// Loads the checkpoint that the run starts from, if there is one; run.remote must be set.
void load_start(TrainRun& run);

// A step has the same bits each time, on each machine of the run.
bool has_same_bits(const TrainRun& run);

// Upper bound for the memory of the batches of a worker's loaders.
std::uint64_t buffer_bytes_of(const TrainRun& run);
// How a run waits for data behind URLs whose server is away: see LoaderOptions.
struct DataWait {
  std::chrono::seconds patience{0};
  // Called in long waits. Throws PeerLost where the run is not to wait any longer.
  std::function<void(elastic::Phase)> while_waiting;
};
DataWait wait_alone();  // of a process without others: until a signal
std::unique_ptr<data::Loader> training_loader(const TrainRun& run, const DataWait& wait);
// nullptr: the run has no validation.
std::unique_ptr<data::Loader> validation_loader(const TrainRun& run, const DataWait& wait);
std::unique_ptr<backend::Executable> compile(const TrainRun& run);
// Of a run whose images grow: for whole ones from its beginning on.
std::unique_ptr<backend::Executable> compile_at_whole_size(const TrainRun& run);

}  // namespace dtrain::job
