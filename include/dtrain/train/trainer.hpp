// The training job of one process: epochs of steps, evaluation, checkpoints; the caller watches through an observer.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <dtrain/backend/backend.hpp>
#include <dtrain/comm/communicator.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/train/checkpoint.hpp>
#include <dtrain/train/plan.hpp>

namespace dtrain::train {

struct StepReport {
  std::uint32_t epoch = 0;
  std::uint64_t step = 0, steps = 0;                  // step counts from 0 inside the epoch
  int samples = 0;                                    // of this step
  std::uint64_t samples_seen = 0;                     // of the whole run, this step included
  double loss = 0, accuracy = 0, top_k_accuracy = 0;  // of this step
  double learning_rate = 0;
  std::chrono::duration<double> time{};  // of this step
};

struct EpochReport {
  std::uint32_t epoch = 0;
  double loss = 0, accuracy = 0, top_k_accuracy = 0;  // over the epoch's training samples
  std::chrono::duration<double> time{};
};

struct EvaluationReport {
  std::uint32_t epoch = 0;
  std::uint64_t samples = 0;
  double loss = 0, accuracy = 0, top_k_accuracy = 0;
};

// Called from the training thread; must be quick. Every default does nothing.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_first_batch(const data::Batch&) {}
  virtual void on_step(const StepReport&) {}
  virtual void on_epoch(const EpochReport&) {}
  virtual void on_evaluation(const EvaluationReport&) {}
  virtual void on_checkpoint(const Path&) {}
  virtual void on_warning(const std::string&) {}
};

struct TrainerOptions {
  std::uint32_t epochs = 1;  // train until so many epochs are complete
  int global_batch = 128;
  int logical_shards = 1;
  std::uint64_t seed = 0;
  nn::Optimizer optimizer;
  nn::Schedule schedule;
  std::optional<Path> checkpoint_prefix;
  std::uint64_t checkpoint_every_steps = 0;       // 0: only at the end of epochs
  std::string checkpoint_format = "safetensors";  // or mxnet: writes both
  int evaluation_block = 128;
  Json preprocessing;
  std::string dtype = "float32";
};

struct TrainResult {
  Cursor cursor;
  std::optional<EvaluationReport> evaluation;  // the last one
};

// Runs until options.epochs are complete. Starts from `start` or fresh weights of options.seed. `validation` may be
// null. Throws Stopped after SIGINT or SIGTERM (a checkpoint is written first where a prefix is given), Error when the
// loss is not finite (naming step and learning rate; nothing of that step is saved). A checkpoint that cannot be
// written is a warning: training goes on and the last good one stays.
TrainResult train(const nn::Graph& graph, backend::Executable& executable, data::Loader& training,
                  data::Loader* validation, comm::Communicator& comm, const TrainerOptions& options,
                  const Checkpoint* start, Observer& observer);

EvaluationReport evaluate(backend::Executable& executable, data::Loader& loader, int block, comm::Communicator& comm);

}  // namespace dtrain::train
