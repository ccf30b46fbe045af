// A training run whose questions are answered: options final, checkpoint agreed with, network chosen, files there. The
// process that the person started settles it once; workers of a job get it as a document and ask nothing again.
#pragma once

#include <memory>
#include <optional>

#include <dtrain/base/reporter.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "config/run_spec.hpp"
#include "config/train_sources.hpp"

namespace dtrain::job {

struct TrainRun {
  config::TrainOptions options;
  std::optional<train::Checkpoint> start;
  Path start_file;  // manifest of `start` where --resume chose it; else empty
  nn::Graph graph;
  config::TrainSources sources;
  std::unique_ptr<backend::Backend> backend;
  backend::DType dtype = backend::DType::float32;
  // How files behind URLs are reached: those to read, and checkpoints.
  data::RemoteOptions remote{};
};

// Its store goes on after a stop signal, so that the last step and checkpoint can be finished. `lent`: of a worker.
data::RemoteOptions remote_of_run(Reporter& reporter, std::shared_ptr<const net::LentCredentials> lent = {});
// Whether any of its files is behind s3://.
bool uses_s3(const TrainRun& run);

// Throws what a person must know before anything runs: UsageError, DataError. options.compute.hosts is set already;
// `workers`: of the start, for the choice of V.
TrainRun settle_run(const config::TrainOptions& given, const config::OptionSet& set, int workers, Reporter& reporter);

// What travels of the run; looks at its files.
config::TrainSpec spec_of(const TrainRun& run);
// All but the checkpoint, for worker `slot` of a host.
TrainRun run_of(const config::TrainSpec& spec, int slot = 0);
// The checkpoint that the run starts from, if there is one; run.remote must be there.
void load_start(TrainRun& run);

// What the batches of a worker's loaders take at most.
std::uint64_t buffer_bytes_of(const TrainRun& run);
std::unique_ptr<data::Loader> training_loader(const TrainRun& run);
std::unique_ptr<data::Loader> validation_loader(const TrainRun& run);  // nullptr: none
// For a loader that met some.
std::string bad_records_warning(const data::Loader& loader);
std::unique_ptr<backend::Executable> compile(const TrainRun& run);

}  // namespace dtrain::job
