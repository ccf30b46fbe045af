#include "dry_run.hpp"

#include <fmt/format.h>

#include <filesystem>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/base/text.hpp>

#include "bench/bench_run.hpp"
#include "bench/run_estimate.hpp"
#include "job/report/run_watch.hpp"

namespace dtrain::cli {
namespace {

constexpr bench::BenchLength kLength{.warmup = 2, .seconds = 3, .enough_steps = 100};

bench::RunSize size_of(const job::TrainRun& run, const data::Loader& training, const data::Loader* validation) {
  const config::TrainOptions& options = run.options;
  const std::uint64_t trained = run.start ? run.start->cursor.epoch : 0;
  const auto epochs = static_cast<std::uint64_t>(options.epochs);
  bench::RunSize size{.images = training.size(),
                      .validation_images = validation ? validation->size() : 0,
                      .batch = static_cast<std::uint64_t>(config::samples_between_exchanges(options)),
                      .epochs = epochs - std::min(epochs, trained)};
  if (!options.model_prefix) return size;
  size.checkpoint_bytes = bench::checkpoint_bytes(run.graph, options.optimizer, options.local, options.job.compression);
  if (options.checkpoint_format == train::CheckpointFormat::mxnet) size.params_bytes = bench::weight_bytes(run.graph);
  size.every = options.checkpoint_every;
  size.checkpoints_kept = static_cast<std::uint64_t>(options.keep_checkpoints);
  size.keeps_best = options.keep_best;
  return size;
}

// What a few steps say of all steps of the run.
struct MeasuredSteps {
  bench::StepTimes times;  // on whole images
  double mean = 0;         // over all steps that are left, in seconds
};

// Growing images are measured where they are smallest and where they are whole, which `executable` is for afterwards.
// The first one is gone before the second one is made, as in the run, so that the memory is that of whole images.
MeasuredSteps measure_steps(const job::TrainRun& run, std::unique_ptr<backend::Executable>& executable,
                            data::Loader& training, const train::TrainerOptions& options) {
  const auto time = [&] { return bench::time_steps(run.graph, *executable, training, options, kLength); };
  const train::ProgressiveSizes& sizes = run.options.resizing;
  if (!sizes.any()) {
    MeasuredSteps steps{.times = time()};
    steps.mean = steps.times.median();
    return steps;
  }
  const double first = time().median();
  executable.reset();
  executable = job::compile_at_whole_size(run);
  MeasuredSteps steps{.times = time()};
  const double trained = run.start ? run.start->cursor.epoch : 0;
  const double done = options.epochs == 0 ? 1 : std::min(1.0, trained / options.epochs);
  steps.mean = bench::mean_step_seconds(sizes, run.graph.input(), done, first, steps.times.median());
  return steps;
}

// On the disk of the checkpoints; nullopt where there are none, or they are not on a disk of this machine. A folder
// that the run would make is on the disk of the one above it.
std::optional<std::uint64_t> free_bytes(const config::TrainOptions& options) {
  if (!options.model_prefix || data::is_remote(*options.model_prefix)) return std::nullopt;
  std::error_code error;
  const Path folder = existing_folder(std::filesystem::absolute(*options.model_prefix).parent_path(), error);
  if (error) return std::nullopt;
  const auto space = std::filesystem::space(folder, error);
  return error ? std::nullopt : std::optional<std::uint64_t>(space.available);
}

std::string duration(double seconds) { return format_duration(std::chrono::duration<double>(seconds)); }

Json document(const job::TrainRun& run, const bench::RunSize& size, const MeasuredSteps& steps,
              const bench::RunEstimate& estimate, const std::optional<std::uint64_t>& room) {
  Json json = Json::object({{"schema", "dtrain.dry-run/1"},
                            {"network", run.graph.name},
                            {"parameters", run.graph.parameter_count},
                            {"dtype", backend::dtype_name(run.dtype)}});
  json["training_images"] = size.images;
  json["validation_images"] = size.validation_images;
  json["epochs"] = size.epochs;
  json["steps_per_epoch"] = estimate.steps;
  json["step_seconds"] = steps.mean;
  if (run.options.resizing.any()) json["whole_step_seconds"] = steps.times.median();
  json["epoch_seconds"] = estimate.epoch_seconds;
  json["validation_seconds"] = estimate.validation_seconds;
  json["run_seconds"] = estimate.run_seconds;
  json["peak_memory_bytes"] = steps.times.peak_memory;
  json["checkpoints"] = size.checkpoint_bytes > 0 ? estimate.checkpoints : 0;
  json["checkpoint_bytes"] = estimate.checkpoint_bytes;
  json["free_bytes"] = room ? Json(*room) : Json();
  return json;
}

void answer(const bench::RunSize& size, const MeasuredSteps& steps, const bench::RunEstimate& estimate,
            const std::optional<std::uint64_t>& room, Reporter& reporter) {
  const double rate = static_cast<double>(bench::images_of_step(size)) / steps.mean, whole = steps.times.median();
  const std::string of_whole =
      whole == steps.mean ? "" : fmt::format(" in the mean, {} of whole images", duration(whole));
  reporter.answer(fmt::format("A step takes {}{}, {:.0f} images/sec, and the process {} of memory",
                              duration(steps.mean), of_whole, rate, format_bytes(steps.times.peak_memory)));
  const std::string validation =
      size.validation_images > 0 ? fmt::format(", its validation {}", duration(estimate.validation_seconds)) : "";
  reporter.answer(fmt::format("An epoch takes {}{}; the run takes about {}", duration(estimate.epoch_seconds),
                              validation, duration(estimate.run_seconds)));
  if (size.checkpoint_bytes > 0) {
    reporter.answer(fmt::format("Its checkpoints take {}{}", format_bytes(estimate.checkpoint_bytes),
                                room ? fmt::format(" of {} on the disk", format_bytes(*room)) : std::string()));
  }
  reporter.answer("Nothing was saved: leave --dry-run out to train");
}

}  // namespace

void dry_run(const job::TrainRun& run, data::Loader& training, data::Loader* validation, Reporter& reporter) {
  std::unique_ptr<backend::Executable> executable = job::compile(run);
  job::show_opening(run, 1, reporter);
  train::TrainerOptions options = config::trainer_options(run.options, run.dtype);
  options.checkpoint_prefix.reset();
  const MeasuredSteps steps = measure_steps(run, executable, training, options);
  for (const std::string& warning : steps.times.warnings) reporter.warn(warning);
  const double of_image = validation ? bench::validation_seconds_per_image(*executable, *validation,
                                                                           options.evaluation_block, options.test_views)
                                     : 0;
  const bench::RunSize size = size_of(run, training, validation);
  const bench::RunEstimate estimate = bench::estimate_run(size, steps.mean, of_image);
  const auto room = free_bytes(run.options);
  if (reporter.json()) {
    reporter.answer_json(document(run, size, steps, estimate, room));
  } else {
    answer(size, steps, estimate, room, reporter);
  }
  if (room && estimate.checkpoint_bytes > *room) {
    throw Error(fmt::format("the {} checkpoints of this run take {}, and the disk has room for {}",
                            estimate.checkpoints, format_bytes(estimate.checkpoint_bytes), format_bytes(*room)),
                "--keep-checkpoints N keeps the newest N");
  }
}

}  // namespace dtrain::cli
