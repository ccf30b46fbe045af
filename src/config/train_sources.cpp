#include "train_sources.hpp"

#include <dtrain/base/error.hpp>

namespace dtrain::config {

TrainSources choose_sources(const TrainOptions& options, const OptionSet& set, Reporter& reporter) {
  TrainSources sources;
  if (options.benchmark && options.job.is_job() && options.job.is_on_other_machines()) {
    sources.train = shared_synthetic_records(std::filesystem::absolute(options.job.folder), options.data,
                                             options.compute.samples_per_step());
    return sources;
  }
  if (options.benchmark) {
    sources.synthetic = std::make_unique<SyntheticData>(options.data, options.compute.samples_per_step());
    sources.train = sources.synthetic->records();
    return sources;
  }
  if (!options.data.train)
    throw UsageError("train: --data-train is missing",
                     "give the record files to train on; `dtrain data prepare` or `dtrain data pack` makes them");
  sources.train = *options.data.train;
  require_records(sources.train);
  require_index(options.data.train_index, sources.train, "data-train-idx");
  // A recipe's own validation images do not belong to other training data.
  const bool belongs = set.chosen("data-val") || !set.chosen("data-train");
  if (belongs) sources.validation = options.data.validation;
  if (!sources.validation) reporter.note("No --data-val: training without validation");
  if (!sources.validation) return sources;
  require_records(*sources.validation);
  require_index(options.data.validation_index, *sources.validation, "data-val-idx");
  return sources;
}

}  // namespace dtrain::config
