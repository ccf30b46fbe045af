#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>

#include "train_run.hpp"

namespace dtrain::job {
namespace {

// Pictures of a group make a step, or a block of an evaluation.
data::LoaderOptions options_of_training(const TrainRun& run) {
  data::LoaderOptions options = training_loader(run.options.data, run.options.compute.seed);
  options.group_batch = config::samples_between_exchanges(run.options);
  return options;
}

data::LoaderOptions options_of_validation(const TrainRun& run) {
  data::LoaderOptions options = validation_loader(run.options.data);
  options.group_batch = config::largest_shard(config::compute_of_worker(run.options));
  return options;
}

}  // namespace

std::uint64_t buffer_bytes_of(const TrainRun& run) {
  const config::ComputeOptions compute = config::compute_of_worker(run.options);
  const std::uint64_t training =
      data::buffer_bytes(options_of_training(run), config::samples_between_exchanges(run.options));
  if (!run.sources.validation) return training;
  return training + data::buffer_bytes(options_of_validation(run), config::largest_shard(compute));
}

DataWait wait_alone() {
  return {std::chrono::minutes(10), [](elastic::Phase) {
            if (stop_signal() != 0) throw PeerLost("stopped by a signal while the server of the data was away");
          }};
}

std::unique_ptr<data::Loader> training_loader(const TrainRun& run, const DataWait& wait) {
  data::LoaderOptions options = options_of_training(run);
  options.remote = with_cache(run);
  options.patience = wait.patience;
  options.while_waiting = [wait] { wait.while_waiting(elastic::Phase::loading); };
  config::load_for(*run.backend, options);
  options.as_bytes = config::trains_on_bytes(run.options, *run.backend);
  return std::make_unique<data::Loader>(run.sources.train, std::move(options));
}

std::unique_ptr<data::Loader> validation_loader(const TrainRun& run, const DataWait& wait) {
  if (!run.sources.validation) return nullptr;
  data::LoaderOptions options = options_of_validation(run);
  options.remote = with_cache(run);
  options.patience = wait.patience;
  options.while_waiting = [wait] { wait.while_waiting(elastic::Phase::evaluating); };
  config::load_for(*run.backend, options);
  return std::make_unique<data::Loader>(*run.sources.validation, std::move(options));
}

}  // namespace dtrain::job
