#include "run_watch.hpp"

#include <fmt/format.h>

#include <dtrain/base/text.hpp>

#include "config/gpu_choice.hpp"

namespace dtrain::job {

RunWatch::RunWatch(Reporter& reporter, const TrainRun& run)
    : reporter_(reporter), run_(run), log_(reporter, run.options), json_(reporter) {
  observers_.add(log_);
  if (reporter.json()) observers_.add(json_);
  if (run.options.tensorboard) observers_.add(board_.emplace(*run.options.tensorboard, run.options.data));
}

void RunWatch::begin(int workers) {
  const config::ComputeOptions& compute = run_.options.compute;
  const nn::Graph& graph = run_.graph;
  const int shards = compute.logical_shards;
  reporter_.note(fmt::format("dtrain {} on {}, {}{} threads, {}", DTRAIN_VERSION, run_.backend->description(),
                             workers > 1 ? fmt::format("{} workers x ", workers) : "", compute.threads,
                             backend::dtype_name(run_.dtype)));
  reporter_.note(fmt::format("{}: {} parameters, {}x{}x{} -> {} classes", graph.name, graph.parameter_count,
                             graph.input().c, graph.input().h, graph.input().w, graph.classes()));
  if (run_.options.job.is_per_worker()) {
    reporter_.note(fmt::format("{} samples a step on each worker; the learning rate follows: {}",
                               config::batch_of_worker(compute), train::elastic_rate_name(run_.options.job.rate)));
  } else {
    reporter_.note(fmt::format("G = {} samples a step in V = {} logical {}; {}", compute.samples_per_step(), shards,
                               shards == 1 ? "shard" : "shards", config::efficiency_line(shards)));
  }
  const std::uint64_t buffers = buffer_bytes_of(run_);
  reporter_.note(fmt::format("--prefetch {}: up to {} of samples in memory{}", run_.options.data.prefetch,
                             format_bytes(buffers), workers > 1 ? " of each worker" : ""));
  if (run_.options.model_prefix) {
    const std::uint32_t next = run_.start ? run_.start->cursor.epoch : 0;
    reporter_.note(fmt::format(
        "The log counts epochs from 0 and file names count those that are complete: Epoch[{}] ends with \"{}\"", next,
        train::CheckpointName{*run_.options.model_prefix, next + 1}.stem()));
  }
  if (reporter_.json()) reporter_.answer_json(start_event(workers));
}

Json RunWatch::start_event(int workers) const {
  const config::ComputeOptions& compute = run_.options.compute;
  return Json::object({{"schema", "dtrain.train/1"},
                       {"event", "start"},
                       {"version", DTRAIN_VERSION},
                       {"network", run_.graph.name},
                       {"parameters", run_.graph.parameter_count},
                       {"dtype", backend::dtype_name(run_.dtype)},
                       {"workers", workers},
                       {"threads", compute.threads},
                       {"global_batch", compute.samples_per_step()},
                       {"logical_shards", compute.logical_shards},
                       {"seed", compute.seed}});
}

void RunWatch::end(const train::TrainResult& result) {
  std::string line = fmt::format("{} epochs trained", result.cursor.epoch);
  if (result.evaluation) {
    line +=
        fmt::format("; validation accuracy {:.6f}, loss {:.6f}", result.evaluation->accuracy, result.evaluation->loss);
  }
  if (log_.last_checkpoint()) line += fmt::format("; checkpoint {}", log_.last_checkpoint()->string());
  if (!reporter_.json()) reporter_.answer(line);
}

}  // namespace dtrain::job
