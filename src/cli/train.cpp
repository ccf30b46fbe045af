#include <fmt/format.h>

#include <dtrain/base/stop.hpp>
#include <dtrain/elastic/membership.hpp>

#include "command.hpp"
#include "loader_speed.hpp"
#include "signals.hpp"
#include "train_events.hpp"
#include "train_log.hpp"
#include "train_options.hpp"
#include "train_sources.hpp"
#include "train_start.hpp"

namespace dtrain::cli {
namespace {

void refuse_what_needs_hosts(const TrainOptions& options) {
  const char* asked = options.workers > 1 ? "--num-workers"
                      : options.hostfile  ? "--hostfile"
                      : options.elastic   ? "--elastic"
                                          : nullptr;
  if (!asked) return;
  throw UsageError(fmt::format("{}: this dtrain trains on one machine", asked),
                   "leave it out; --threads and --logical-shards use all processors of this one");
}

bool has_gpu() { return std::filesystem::exists("/dev/nvidia0"); }

void say_what_is_accepted(const TrainOptions& options, Console& console) {
  if (options.servers)
    console.log("-s is not needed: the workers add their gradients themselves, there are no servers");
  if (has_gpu()) console.log("This machine has a GPU; this dtrain computes on the CPU");
}

ExitCode test_io(const TrainOptions& options, data::Loader& loader, Console& console) {
  const auto every = static_cast<std::uint64_t>(options.disp_batches);
  auto begin = std::chrono::steady_clock::now();
  std::uint64_t samples = 0;
  load_epoch(loader, 0, options.compute.samples_per_step(), [&](std::uint64_t batch, int count) {
    samples += static_cast<std::uint64_t>(count);
    if ((batch + 1) % every != 0) return stop_signal() == 0;
    const auto now = std::chrono::steady_clock::now();
    const double rate = static_cast<double>(samples) / std::chrono::duration<double>(now - begin).count();
    console.answer(fmt::format("Batch [{}]\tSpeed: {:.2f} samples/sec", batch, rate));
    begin = now;
    samples = 0;
    return stop_signal() == 0;
  });
  if (stop_signal() != 0) throw Interrupted(stop_signal(), "stopped by a signal while loading");
  return ExitCode::ok;
}

void say_what_runs(const TrainOptions& options, const nn::Graph& graph, const backend::Backend& backend,
                   backend::DType dtype, Console& console) {
  const int shards = options.compute.logical_shards;
  console.log(fmt::format("dtrain {} on {}, {} threads, {}", DTRAIN_VERSION, backend.description(),
                          options.compute.threads, backend::dtype_name(dtype)));
  console.log(fmt::format("{}: {} parameters, {}x{}x{} -> {} classes", graph.name, graph.parameter_count,
                          graph.input().c, graph.input().h, graph.input().w, graph.classes()));
  console.log(fmt::format("G = {} samples a step in V = {} logical {}; {}", options.compute.samples_per_step(), shards,
                          shards == 1 ? "shard" : "shards", efficiency_line(shards)));
}

Json start_event(const TrainOptions& options, const nn::Graph& graph, backend::DType dtype) {
  return Json::object({{"schema", "dtrain.train/1"},
                       {"event", "start"},
                       {"version", DTRAIN_VERSION},
                       {"network", graph.name},
                       {"parameters", graph.parameter_count},
                       {"dtype", backend::dtype_name(dtype)},
                       {"threads", options.compute.threads},
                       {"global_batch", options.compute.samples_per_step()},
                       {"logical_shards", options.compute.logical_shards},
                       {"seed", options.compute.seed}});
}

void answer_result(const train::TrainResult& result, const TrainLog& log, Console& console) {
  std::string line = fmt::format("{} epochs trained", result.cursor.epoch);
  if (result.evaluation) {
    line +=
        fmt::format("; validation accuracy {:.6f}, loss {:.6f}", result.evaluation->accuracy, result.evaluation->loss);
  }
  if (log.last_checkpoint()) line += fmt::format("; checkpoint {}", log.last_checkpoint()->string());
  if (!console.json()) console.answer(line);
}

void warn_of_bad_records(const data::Loader& loader, train::Observer& observer) {
  if (loader.bad_records() == 0) return;
  observer.on_warning(fmt::format("{} records could not be decoded and were replaced; the first: {}",
                                  loader.bad_records(), loader.first_bad_record()));
}

// A stop that nothing can resume from becomes the signal that asked for it.
void throw_if_stopped(const train::TrainResult& result) {
  if (result.ended != train::TrainResult::Ended::stopped) return;
  const std::string where =
      fmt::format("stopped by a signal at epoch {} step {}", result.cursor.epoch, result.cursor.step);
  if (result.saved) throw Stopped(where + ", checkpoint saved", "the same command with --resume goes on from here");
  throw Interrupted(stop_signal(), where + ", nothing saved", "give --model-prefix to keep what was trained");
}

// Trains alone. An error that comes with a signal is of less interest than the signal.
train::TrainResult train_alone(const nn::Graph& graph, backend::Executable& executable, data::Loader& training,
                               data::Loader* validation, const train::TrainerOptions& options,
                               const train::Checkpoint* start, train::Observer& observer) {
  const auto membership = elastic::make_fixed_membership(comm::make_single());
  try {
    return train::train(graph, executable, training, validation, *membership, options, start, observer);
  } catch (const Error& error) {
    if (stop_signal() == 0) throw;
    throw Interrupted(stop_signal(), error.what(), error.hint());
  }
}

ExitCode act(const TrainOptions& given, const OptionSet& set, Console& console) {
  TrainOptions options = given;
  refuse_what_needs_hosts(options);
  check_shards(options.compute);
  const auto backend = choose_backend(options.compute);
  const backend::DType dtype = choose_dtype(options.compute, *backend);
  watch_stop_signals();

  std::optional<train::Checkpoint> start = find_start(options, set, console);
  if (start) agree_with_checkpoint(*start, set, options);
  const nn::Graph graph = graph_of_run(start, set, options);
  if (start) fit_optimizer_state(*start, options.optimizer, console);

  const TrainSources sources = choose_sources(options, set, console);
  data::Loader training(sources.train, training_loader(options.data, options.compute.seed));
  if (options.test_io) return test_io(options, training, console);
  std::optional<data::Loader> validation;
  if (sources.validation) validation.emplace(*sources.validation, validation_loader(options.data));

  say_what_is_accepted(options, console);
  say_what_runs(options, graph, *backend, dtype, console);
  const auto executable = backend->compile(graph, compile_options(options.compute, dtype, options.top_k));
  TrainLog log(console, options, graph, *executable);
  JsonEvents json(console);
  std::optional<BoardEvents> board;
  Observers observers;
  observers.add(log);
  if (console.json()) {
    observers.add(json);
    console.answer_json(start_event(options, graph, dtype));
  }
  if (options.tensorboard) observers.add(board.emplace(*options.tensorboard, options.data));

  const train::TrainResult result = train_alone(graph, *executable, training, validation ? &*validation : nullptr,
                                                trainer_options(options, dtype), start ? &*start : nullptr, observers);
  throw_if_stopped(result);
  warn_of_bad_records(training, observers);
  answer_result(result, log, console);
  return ExitCode::ok;
}

}  // namespace

std::unique_ptr<Command> make_train() {
  auto command = make_command<TrainOptions>("train", "train a model on this machine", act);
  command->examples = {
      "dtrain train --network resnet --num-layers 8 --data-train d/shapes_train.rec --data-val d/shapes_val.rec "
      "--num-epochs 4 --model-prefix m/shapes",
      "dtrain train --recipe mnist --model-prefix m/mnist",
      "dtrain train --num-layers 20 --dtype auto --logical-shards 4 --model-prefix m/r20 --resume"};
  command->see_also = {"eval", "inspect", "data prepare", "bench train"};
  return command;
}

}  // namespace dtrain::cli
