// Measurements of training steps, and references to compare them with.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::bench {

// The length of a measurement: a number of steps, or if that is 0 a time, which ends early after as many steps as say
// enough. Warm-up steps come before and do not count.
struct BenchLength {
  int warmup = 5;
  int steps = 0;
  double seconds = 5;
  int enough_steps = std::numeric_limits<int>::max();
};

struct StepTimes {
  std::vector<double> seconds;          // per measured step, loading included, in ascending order
  double loading = 0, applying = 0;     // medians of a step's wait for the loader, and of its optimizer
  double first_step = 0;                // from the start of the process to the end of the first step
  std::uint64_t peak_memory = 0;        // bytes, of the whole process
  std::vector<std::string> warnings;    // of the training, in that order
  double share(double quantile) const;  // a step time; quantile in [0, 1]
  double median() const { return share(0.5); }
};

// Trains with the loop of `dtrain train` and discards the result. A step of fewer samples than the first one, as the
// last one of an epoch may be, is not measured.
StepTimes time_steps(const nn::Graph& graph, backend::Executable& executable, data::Loader& loader,
                     train::TrainerOptions options, const BenchLength& length);

// Times each operation of one shard of `samples`.
backend::Profile profile_shard(backend::Executable& executable, data::Loader& loader, int samples);

// The time of a step that does nothing but these operations for all shards, one after the other.
double operations_seconds(const backend::Profile& profile, int shards, int lanes);
// The same of a step that computes nothing but the bare convolutions.
double bare_convolution_seconds(const backend::Profile& profile, int shards, int lanes);

}  // namespace dtrain::bench
