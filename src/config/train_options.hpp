// The options of `dtrain train`: those of MXNet's image-classification scripts with their names, meaning and defaults,
// and dtrain's own.
#pragma once

#include <optional>
#include <string>

#include <dtrain/nn/optimizer.hpp>
#include <dtrain/train/progressive_sizes.hpp>
#include <dtrain/train/trainer.hpp>

#include "compute_options.hpp"
#include "data_options.hpp"
#include "job_options.hpp"
#include "network_choice.hpp"
#include "option_set.hpp"
#include "pretrained.hpp"

namespace dtrain::config {

// What the network's loss is, beside its label smoothing: see nn::SoftmaxLoss.
struct LossOptions {
  bool bce = false;
  float target_threshold = 1, focal_gamma = 0;
  std::string class_weights;  // "balanced", or a file; empty: none
};
inline constexpr const char* kBalanced = "balanced";

struct TrainOptions {
  std::string recipe = "cifar10";
  NetworkChoice network;
  DataOptions data;
  ComputeOptions compute;
  LossOptions loss;
  nn::Initializer initializer = nn::Initializer::standard;
  nn::Optimizer optimizer;
  nn::Schedule schedule{.base = 0.1};
  bool has_warmup_of_file = false;  // the flag --warmup-epochs stands for a file's: see mark_warmup_of_file()
  int epochs = 100;
  int early_stop = 0;  // epochs without a better validation; 0: does not stop
  train::LocalSteps local;
  bool synchronized_norms = false;  // all of the network
  train::ProgressiveSizes resizing;
  data::MixOptions mix;
  int top_k = 0;                    // 0: not reported
  std::vector<std::string> losses;  // names under which the log shows the loss; empty: it does not
  int disp_batches = 20;
  int monitor = 0;  // steps between looks at the parameters; 0: never
  bool benchmark = false, test_io = false;
  bool dry_run = false;

  Pretrained pretrained;
  std::optional<Path> model_prefix;
  std::optional<int> load_epoch;  // kBestEpoch until the run is settled
  bool resume = false;
  bool force = false;  // train over the checkpoints of a run before
  std::uint64_t checkpoint_every = 0;
  train::CheckpointFormat checkpoint_format = train::CheckpointFormat::safetensors;
  int keep_checkpoints = 0;  // 0: all
  bool keep_best = false;
  std::optional<Path> tensorboard;

  JobOptions job;
};

// The defaults, with those that depend on this machine.
TrainOptions options_of_this_machine();

void bind(OptionSet& set, TrainOptions& options);

// Samples of a step, or of all local steps between two exchanges.
int samples_between_exchanges(const TrainOptions& options);

// What one worker's executable computes at once: with a batch for each worker its step is one shard of its own.
ComputeOptions compute_of_worker(const TrainOptions& options);

// Whether the batches of a training step are bytes, as the backend may wish.
bool trains_on_bytes(const TrainOptions& options, const backend::Backend& backend);
// Of one worker's executable, with what a step needs while the job has as many workers as at its start.
backend::CompileOptions compile_options(const TrainOptions& options, const backend::Backend& backend,
                                        backend::DType dtype);

train::TrainerOptions trainer_options(const TrainOptions& options, backend::DType dtype);

}  // namespace dtrain::config
