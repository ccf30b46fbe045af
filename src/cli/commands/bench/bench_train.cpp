#include <fmt/format.h>

#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/remote.hpp>

#include "bench/bench_determinism.hpp"
#include "bench/bench_run.hpp"
#include "bench/step_parts.hpp"
#include "cli/command.hpp"
#include "config/compute_options.hpp"
#include "config/data_options.hpp"
#include "config/gpu/gpu_choice.hpp"
#include "config/network_choice.hpp"
#include "config/option_values.hpp"
#include "config/synthetic_data.hpp"

namespace dtrain::cli {
namespace {

struct TrainBenchOptions {
  config::NetworkChoice network;
  config::DataOptions data;
  config::ComputeOptions compute;
  bench::BenchLength length;
};

void bind(config::OptionSet& set, TrainBenchOptions& options) {
  options.network.options.name = "resnet-v1";
  options.network.options.num_layers = 20;
  options.data.image = {3, 32, 32};
  options.data.augment.pad_size = 4;
  config::bind_network(set, options.network);
  set.group("Data");
  set.add("--data-train", options.data.train,
          "record files to train on (default random images, for a detector drawn scenes)");
  config::bind_data_threads(set, options.data);
  config::bind_image(set, options.data);
  config::bind_augmentation(set, options.data);
  config::bind_batch(set, options.compute);
  config::bind_device(set, options.compute, 1);
  set.group("Measurement");
  set.add("--warmup", options.length.warmup, "STEPS", "number of warm-up steps before the measurement",
          config::at_least(0));
  set.add("--steps", options.length.steps, "N", "number of steps to measure; 0 measures for --seconds",
          config::at_least(0));
  set.add_zero_or_one("--join-passes", options.compute.cuda.fuses,
                      "on a GPU, 1 lets cuDNN fuse operations; 0 runs each in a pass of its own, for comparison");
  set.add("--time-plans", options.compute.cuda.plans_to_time, "K",
          "on a GPU, number of cuDNN plans to time for each convolution that has no timing yet. The fastest is stored "
          "in ~/.cache/dtrain, and later runs on this kind of GPU use it; all hosts of a job need the same file",
          config::at_least(0));
  config::add_choice(
      set, "--own-products", options.compute.cuda.own_products, config::kOwnProductsNames,
      "on a Hopper GPU, when dtrain's own kernels compute 1x1 convolutions in bfloat16 and float16, once "
      "the GPU has shown that they agree with cuDNN: never, timed (where --time-plans found them faster), "
      "or first (without being timed)");
  set.add("--seconds", options.length.seconds, "S", "duration of the measurement in seconds if --steps is 0",
          config::more_than(0));
}

struct BenchResult {
  std::string network, backend, dtype;
  backend::CompileOptions compile;
  bench::StepTimes times;
  std::uint64_t planned_bytes = 0;
  backend::Profile profile;
  std::vector<bench::StepPart> parts;
  std::optional<bench::DeterminismCost> determinism;  // on a GPU
  Json execution;                                     // Executable::execution()
  int samples = 0, shards = 1;

  double rate() const { return samples / times.median(); }
  // All operations alone as a share of the step; what is missing to 1 is launches, waiting and the update.
  double operations_seconds() const { return bench::operations_seconds(profile, shards, compile.lanes); }
  double operations_share() const { return operations_seconds() / times.median(); }
  double limit_seconds() const { return bench::bare_convolution_seconds(profile, shards, compile.lanes); }
  // The measured speed as a share of that of the bare convolutions; 0 where the backend has none.
  double limit_share() const { return limit_seconds() / times.median(); }
};

// nullopt: on the CPU there is no other way.
std::optional<bench::DeterminismCost> measure_determinism(const TrainBenchOptions& options, const nn::Graph& graph,
                                                          const backend::CompileOptions& compile,
                                                          backend::Executable& asked, const bench::TimeSteps& time) {
  if (!config::gpu_of_slot(options.compute, 0)) return std::nullopt;
  const auto make_other = [&] {
    config::ComputeOptions other = options.compute;
    other.cuda.deterministic = !other.cuda.deterministic;
    return config::choose_backend(other)->compile(graph, compile);
  };
  return bench::cost_of_determinism(options.compute.cuda.deterministic, asked, make_other, options.length, time);
}

BenchResult measure(const TrainBenchOptions& options, const config::OptionSet& set) {
  config::DataOptions data = options.data;
  config::NetworkChoice network = options.network;
  // 20 is the depth of the default network only.
  if (set.chosen("network") && !set.chosen("num-layers")) network.options.num_layers = 0;
  const nn::Graph graph = config::choose_graph(network, set, data);
  config::suit_network(graph, set, data);
  const auto backend = config::choose_backend(options.compute);
  const backend::DType dtype = config::choose_dtype(options.compute, *backend);
  const int samples = options.compute.samples_per_step();
  std::optional<config::SyntheticData> synthetic;
  if (!data.train) data.train = synthetic.emplace(data, samples).records();
  config::require_records(*data.train);

  data::LoaderOptions loading = training_loader(data, options.compute.seed);
  config::load_for(*backend, loading);
  data::Loader loader(*data.train, loading);
  if (loader.size() < static_cast<std::uint32_t>(samples)) {
    throw UsageError(fmt::format("{}: has {} records, less than the {} of a step", data::shown_files(*data.train),
                                 loader.size(), samples),
                     "choose a smaller --batch-size, or a larger file");
  }
  BenchResult result;
  result.network = graph.name;
  result.backend = backend->description();
  result.dtype = backend::dtype_name(dtype);
  result.compile = config::compile_options(options.compute, dtype, 0);
  result.samples = samples;
  result.shards = options.compute.logical_shards;
  result.compile.shards = result.shards;
  result.compile.batches_as_bytes = loading.as_bytes;
  result.compile.waiting_sums = backend::waiting_subtrees(result.shards);
  const auto executable = backend->compile(graph, result.compile);
  train::TrainerOptions trainer;
  trainer.global_batch = samples;
  trainer.logical_shards = result.shards;
  trainer.seed = options.compute.seed;
  const auto time = [&](backend::Executable& one, const bench::BenchLength& length) {
    return bench::time_steps(graph, one, loader, trainer, length);
  };
  result.times = time(*executable, options.length);
  result.execution = executable->execution();
  result.determinism = measure_determinism(options, graph, result.compile, *executable, time);
  result.planned_bytes = executable->planned_bytes();
  synthetic.reset();      // the loader still reads the removed files, and a signal from now on leaves none behind
  end_at_stop_signals();  // a profile takes several steps, which may be long
  result.profile = bench::profile_shard(*executable, loader, result.compile.max_samples);
  result.parts = bench::step_parts(result.profile, {.seconds = result.times.median(),
                                                    .loading = result.times.loading,
                                                    .applying = result.times.applying,
                                                    .optimizer_bytes = bench::optimizer_bytes(executable->state()),
                                                    .shards = result.shards,
                                                    .lanes = result.compile.lanes});
  return result;
}

Json operations_json(const BenchResult& result) {
  Json list = Json::array();
  for (const backend::OperationTime& operation : result.profile.of_shard) {
    list.push_back(Json::object({{"op", operation.name},
                                 {"kind", operation.kind},
                                 {"shape", operation.shape},
                                 {"seconds", operation.seconds},
                                 {"bare_seconds", operation.bare_seconds},
                                 {"bytes", operation.bytes}}));
  }
  return list;
}

Json parts_json(const BenchResult& result) {
  Json list = Json::array();
  for (const bench::StepPart& part : result.parts) {
    list.push_back(Json::object({{"part", part.name},
                                 {"seconds", part.seconds},
                                 {"limit_seconds", part.limit_seconds ? Json(*part.limit_seconds) : Json()},
                                 {"bytes", part.bytes}}));
  }
  return list;
}

Json determinism_json(const BenchResult& result) {
  if (!result.determinism) return {};
  const bench::DeterminismCost& cost = *result.determinism;
  if (!cost.unknown.empty()) return Json::object({{"unknown", cost.unknown}});
  return Json::object({{"deterministic_cost", cost.ratio()},
                       {"seconds_on", cost.seconds_on},
                       {"seconds_off", cost.seconds_off},
                       {"turns", cost.turns}});
}

Json document(const BenchResult& result) {
  Json json = Json::object({{"schema", "dtrain.bench-train/1"},
                            {"network", result.network},
                            {"backend", result.backend},
                            {"dtype", result.dtype},
                            {"lanes", result.compile.lanes},
                            {"threads_per_lane", result.compile.threads_per_lane},
                            {"global_batch", result.samples},
                            {"logical_shards", result.shards}});
  json["steps"] = std::uint64_t{result.times.seconds.size()};
  json["images_per_second"] = result.rate();
  json["images_per_second_low"] = result.samples / result.times.share(0.9);
  json["images_per_second_high"] = result.samples / result.times.share(0.1);
  json["step_seconds"] = result.times.median();
  json["first_step_seconds"] = result.times.first_step;
  json["peak_memory_bytes"] = result.times.peak_memory;
  json["planned_bytes"] = result.planned_bytes;
  json["limit_images_per_second"] = result.limit_seconds() > 0 ? Json(result.samples / result.limit_seconds()) : Json();
  json["limit_share"] = result.limit_seconds() > 0 ? Json(result.limit_share()) : Json();
  json["deterministic"] = determinism_json(result);
  json["execution"] = result.execution;
  json["operations_seconds"] = result.operations_seconds();
  json["operations_share"] = result.operations_share();
  json["memory_bytes_per_second"] = result.profile.bytes_per_second * result.compile.lanes;
  json["parts"] = parts_json(result);
  json["operations"] = operations_json(result);
  return json;
}

void answer_determinism(const BenchResult& result, Reporter& reporter) {
  if (!result.determinism) return;
  const bench::DeterminismCost& cost = *result.determinism;
  reporter.answer(cost.unknown.empty()
                      ? fmt::format("deterministic: {:.3f} x the step of --deterministic off ({:.2f} ms, {:.2f} ms)",
                                    cost.ratio(), 1e3 * cost.seconds_on, 1e3 * cost.seconds_off)
                      : fmt::format("cost of --deterministic on is unknown: {}", cost.unknown));
}

void answer_summary(const BenchResult& result, Reporter& reporter) {
  const bench::StepTimes& times = result.times;
  reporter.answer(fmt::format("{} on {}, {}, {} x {} threads, G = {}, V = {}", result.network, result.backend,
                              result.dtype, result.compile.lanes, result.compile.threads_per_lane, result.samples,
                              result.shards));
  reporter.answer(fmt::format("{:.0f} images/sec (10 % to 90 %: {:.0f} to {:.0f}), step {:.2f} ms, {} steps",
                              result.rate(), result.samples / times.share(0.9), result.samples / times.share(0.1),
                              1e3 * times.median(), times.seconds.size()));
  reporter.answer(fmt::format("first step done {:.2f} s after the start; peak memory {}, of it planned {}",
                              times.first_step, format_bytes(times.peak_memory), format_bytes(result.planned_bytes)));
  answer_determinism(result, reporter);
  reporter.answer(fmt::format("all operations alone: {:.2f} ms, {:.1f} % of the step",
                              1e3 * result.operations_seconds(), 100 * result.operations_share()));
  if (result.limit_seconds() <= 0) return;
  reporter.answer(fmt::format("bare convolutions alone: {:.0f} images/sec; reached: {:.1f} %",
                              result.samples / result.limit_seconds(), 100 * result.limit_share()));
}

void answer_parts(const BenchResult& result, Reporter& reporter) {
  const double step = result.times.median();
  std::uint64_t bytes = 0;
  reporter.answer(fmt::format("\n{:<24}{:>10}{:>10}{:>12}{:>12}{:>14}", "part of a step", "ms", "share", "limit ms",
                              "of limit", "memory MB"));
  for (const bench::StepPart& part : result.parts) {
    bytes += part.bytes;
    const bool limited = part.limit_share() > 0;
    reporter.answer(fmt::format("{:<24}{:>10.2f}{:>8.1f} %{:>12}{:>12}{:>14}", part.name, 1e3 * part.seconds,
                                100 * part.seconds / step,
                                limited ? fmt::format("{:.2f}", 1e3 * *part.limit_seconds) : "",
                                limited ? fmt::format("{:.1f} %", 100 * part.limit_share()) : "",
                                part.bytes > 0 ? fmt::format("{:.1f}", 1e-6 * static_cast<double>(part.bytes)) : ""));
  }
  if (result.profile.bytes_per_second <= 0) return;
  reporter.answer(fmt::format("{:.1f} MB to and from memory in a step; memory alone: {:.1f} GB/s",
                              1e-6 * static_cast<double>(bytes),
                              1e-9 * result.profile.bytes_per_second * result.compile.lanes));
}

void answer_operations(const BenchResult& result, Reporter& reporter) {
  reporter.answer(fmt::format("\n{:<40}{:<25}{:<42}{:>10}{:>10}{:>8}", "operation of one shard", "kind", "shape", "ms",
                              "bare ms", "ratio"));
  for (const backend::OperationTime& operation : result.profile.of_shard) {
    const bool has_bare = operation.bare_seconds > 0 && operation.seconds > 0;
    reporter.answer(fmt::format("{:<40}{:<25}{:<42}{:>10.3f}{:>10}{:>8}", operation.name, operation.kind,
                                operation.shape, 1e3 * operation.seconds,
                                has_bare ? fmt::format("{:.3f}", 1e3 * operation.bare_seconds) : "",
                                has_bare ? fmt::format("{:.2f}", operation.bare_seconds / operation.seconds) : ""));
  }
}

ExitCode act(const TrainBenchOptions& options, const config::OptionSet& set, Reporter& reporter) {
  config::check_shards(options.compute);
  watch_stop_signals();
  const BenchResult result = measure(options, set);
  for (const std::string& warning : result.times.warnings) reporter.warn(warning);
  if (reporter.json()) {
    reporter.answer_json(document(result));
  } else {
    answer_summary(result, reporter);
    answer_parts(result, reporter);
    answer_operations(result, reporter);
  }
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_bench_train() {
  auto command = make_command<TrainBenchOptions>(
      "bench train", "measure how fast this machine trains, compared with its bare convolutions", act);
  command->first_options = {"network", "num-layers", "batch-size", "device", "dtype", "seconds"};
  command->examples = {
      "dtrain bench train --network resnet-v1 --num-layers 20 --batch-size 128 --dtype bfloat16 --json",
      "dtrain bench train --threads 2 --logical-shards 4 --steps 50"};
  command->see_also = {"train", "data bench"};
  return command;
}

}  // namespace dtrain::cli
