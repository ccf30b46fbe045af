// What a training run will need of time and room, from a few of its steps.
#pragma once

#include <cstdint>

#include <dtrain/backend/backend.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/train/gradient_compression.hpp>
#include <dtrain/train/progressive_sizes.hpp>

namespace dtrain::bench {

struct RunSize {
  std::uint64_t images = 0, validation_images = 0;  // of an epoch
  std::uint64_t batch = 1;
  std::uint64_t epochs = 0;            // still to train
  std::uint64_t every = 0;             // steps between the checkpoints within an epoch; 0: there are none
  std::uint64_t checkpoint_bytes = 0;  // of one
  std::uint64_t params_bytes = 0;      // of MXNet's file beside that of an epoch's end
  std::uint64_t checkpoints_kept = 0;  // the newest so many; 0: all
  bool keeps_best = false;             // that of an epoch, beside the newest
};

struct RunEstimate {
  std::uint64_t steps = 0;  // of an epoch; the last one may be smaller
  double epoch_seconds = 0, validation_seconds = 0, run_seconds = 0;
  std::uint64_t checkpoints = 0, checkpoint_bytes = 0;  // that stay at the end, and their size
};

// Of the steps that are measured: a batch, or an epoch that is smaller. Pure.
std::uint64_t images_of_step(const RunSize& size);

// Pure. A checkpoint is written after each epoch, and within it as `every` says.
RunEstimate estimate_run(const RunSize& size, double step_seconds, double validation_seconds_per_image);

// Parameters, statistics and the optimizer's slots.
std::uint64_t checkpoint_bytes(const nn::Graph& graph, const nn::Optimizer& optimizer,
                               const train::LocalSteps& local = {}, const train::GradientCompression& compression = {});

// The bytes of weights and statistics alone, which is what MXNet's .params hold.
std::uint64_t weight_bytes(const nn::Graph& graph);

// The mean step of a run whose images grow, from where the share `done` of it is over, by the times of a step on its
// first images and on whole ones: in between time follows the pixels. Pure.
double mean_step_seconds(const train::ProgressiveSizes& sizes, const nn::Shape& whole, double done,
                         double seconds_of_first, double seconds_of_whole);

// By a few blocks of `block` images, loading included.
double validation_seconds_per_image(backend::Executable& executable, data::Loader& loader, int block, int views);

}  // namespace dtrain::bench
