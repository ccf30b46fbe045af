// Random images, and for a detector drawn scenes, as a record file in a temporary folder, so that a benchmark goes
// through the same loader as training.
#pragma once

#include <dtrain/base/files.hpp>

#include "data_options.hpp"

namespace dtrain::config {

using TemporaryFolder = ScratchFolder;

// Random labels teach nothing: a learning rate that moves weights could only end in a loss that is not finite.
inline constexpr double kHarmlessRate = 1e-9;

// In a folder that all machines of a job see; made once, for a job that goes on under another coordinator too.
// `options` suit the network.
Path shared_synthetic_records(const Path& folder, const DataOptions& options, int batch);

class SyntheticData {
 public:
  // A whole number of batches: one, or several that hold at most 16 MiB together. `options` suit the network.
  SyntheticData(const DataOptions& options, int batch);
  const Path& records() const { return records_; }
  int batches() const { return batches_; }

 private:
  ScratchFolder folder_{"dtrain-bench"};
  int batches_;
  Path records_;
};

}  // namespace dtrain::config
