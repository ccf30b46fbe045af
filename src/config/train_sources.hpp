// Which record files a run reads.
#pragma once

#include <memory>
#include <optional>

#include <dtrain/base/reporter.hpp>

#include "synthetic_data.hpp"
#include "train_options.hpp"

namespace dtrain::config {

// The folder of synthetic images lives as long as this.
struct TrainSources {
  std::unique_ptr<SyntheticData> synthetic;
  Path train;
  std::optional<Path> validation;
};

// Throws DataError that names `dtrain data prepare` for a file that is not there. A recipe's own validation file counts
// only with the recipe's own training file.
TrainSources choose_sources(const TrainOptions& options, const OptionSet& set, Reporter& reporter);

}  // namespace dtrain::config
