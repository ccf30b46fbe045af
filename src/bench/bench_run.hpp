// Measurements of training steps, and references to compare them with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::bench {

// The length of a measurement: a number of steps, or if that is 0 a time. Warm-up steps come before and do not count.
struct BenchLength {
  int warmup = 5;
  int steps = 0;
  double seconds = 5;
};

struct StepTimes {
  std::vector<double> seconds;          // per measured step, loading included, in ascending order
  double first_step = 0;                // from the start of the process to the end of the first step
  std::uint64_t peak_memory = 0;        // bytes, of the whole process
  std::vector<std::string> warnings;    // of the training, in that order
  double share(double quantile) const;  // a step time; quantile in [0, 1]
  double median() const { return share(0.5); }
};

// Trains with the loop of `dtrain train` and discards the result.
StepTimes time_steps(const nn::Graph& graph, backend::Executable& executable, data::Loader& loader,
                     train::TrainerOptions options, const BenchLength& length);

// One operation of the step, alone and as the bare primitive.
struct OperationTime {
  std::string name, kind, shape;
  double seconds = 0, bare_seconds = 0;  // per call
};

// Times each operation of one shard of `samples`.
std::vector<OperationTime> profile_shard(backend::Executable& executable, data::Loader& loader, int samples);

// The time of a step that does nothing but these operations for all shards, one after the other.
double operations_seconds(const std::vector<OperationTime>& operations, int shards, int lanes);
// The same of a step that computes nothing but the bare convolutions.
double bare_convolution_seconds(const std::vector<OperationTime>& operations, int shards, int lanes);

}  // namespace dtrain::bench
