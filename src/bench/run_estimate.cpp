#include "run_estimate.hpp"

#include <algorithm>
#include <chrono>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/optimizer.hpp>
#include <dtrain/nn/views.hpp>
#include <dtrain/train/batch_feed.hpp>
#include <dtrain/train/image_sizes.hpp>
#include <dtrain/train/plan.hpp>

namespace dtrain::bench {
namespace {

// What stays at the end: an upper bound, because the best epoch may be among the newest.
struct KeptCheckpoints {
  std::uint64_t all = 0, of_epoch_ends = 0;
};

KeptCheckpoints kept_checkpoints(const RunSize& size, std::uint64_t steps) {
  const std::uint64_t per_epoch = 1 + (size.every > 0 && steps > 0 ? (steps - 1) / size.every : 0);
  const KeptCheckpoints written{.all = size.epochs * per_epoch, .of_epoch_ends = size.epochs};
  if (size.checkpoints_kept == 0) return written;
  const std::uint64_t best = size.keeps_best ? 1 : 0, newest_ends = (size.checkpoints_kept + per_epoch - 1) / per_epoch;
  return {.all = std::min(size.checkpoints_kept + best, written.all),
          .of_epoch_ends = std::min(newest_ends + best, written.of_epoch_ends)};
}

}  // namespace

std::uint64_t images_of_step(const RunSize& size) {
  return std::max<std::uint64_t>(1, std::min(size.batch, size.images));
}

RunEstimate estimate_run(const RunSize& size, double step_seconds, double validation_seconds_per_image) {
  RunEstimate estimate;
  estimate.steps = (size.images + size.batch - 1) / size.batch;
  // The last step of an epoch takes as long as it has images.
  estimate.epoch_seconds = step_seconds * static_cast<double>(size.images) / static_cast<double>(images_of_step(size));
  estimate.validation_seconds = validation_seconds_per_image * static_cast<double>(size.validation_images);
  estimate.run_seconds = static_cast<double>(size.epochs) * (estimate.epoch_seconds + estimate.validation_seconds);
  const KeptCheckpoints kept = kept_checkpoints(size, estimate.steps);
  estimate.checkpoints = kept.all;
  estimate.checkpoint_bytes = kept.all * size.checkpoint_bytes + kept.of_epoch_ends * size.params_bytes;
  return estimate;
}

std::uint64_t checkpoint_bytes(const nn::Graph& graph, const nn::Optimizer& optimizer, const train::LocalSteps& local,
                               const train::GradientCompression& compression) {
  const auto slots = static_cast<std::uint64_t>(train::optimizer_slots(optimizer.kind, local, compression));
  const auto parameters = static_cast<std::uint64_t>(graph.parameter_count);
  return sizeof(float) * slots * parameters + (optimizer.average > 0 ? 2 : 1) * weight_bytes(graph);
}

std::uint64_t weight_bytes(const nn::Graph& graph) {
  return sizeof(float) * static_cast<std::uint64_t>(graph.parameter_count + graph.statistic_count);
}

double mean_step_seconds(const train::ProgressiveSizes& sizes, const nn::Shape& whole, double done,
                         double seconds_of_first, double seconds_of_whole) {
  constexpr int kLooks = 1000;
  const std::int64_t first = sizes.at(0, whole).size();
  if (first == whole.size()) return seconds_of_whole;
  double grown = 0;
  for (int look = 0; look < kLooks; ++look) {
    const std::int64_t pixels = sizes.at(done + (1 - done) * (look + 0.5) / kLooks, whole).size();
    grown += static_cast<double>(pixels - first) / static_cast<double>(whole.size() - first);
  }
  return seconds_of_first + (seconds_of_whole - seconds_of_first) * grown / kLooks;
}

double validation_seconds_per_image(backend::Executable& executable, data::Loader& loader, int block, int views) {
  constexpr std::size_t kBlocks = 4;
  std::vector<data::Slice> slices = train::evaluation_blocks(
      {.samples = loader.size(), .global_batch = block, .last = train::last_steps(loader.groups(), block)}, 0, 1);
  slices.resize(std::min(slices.size(), kBlocks));
  int images = 0;
  for (const data::Slice& slice : slices) images += slice.count;
  DTRAIN_CHECK(images > 0, "a loader has records");
  const auto begin = std::chrono::steady_clock::now();
  loader.start(0, slices);
  while (const std::optional<data::Batch> batch = loader.next()) {
    train::use_size(executable, batch->shape);
    executable.evaluate(train::host_batch(*batch), nn::image_views(views), {});
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return time.count() / static_cast<double>(images);
}

}  // namespace dtrain::bench
