#include "run_watch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/nn/synchronized_norms.hpp>

#include "config/exchange/compression_options.hpp"
#include "config/exchange/local_steps_options.hpp"
#include "config/exchange/server_options.hpp"
#include "config/exchange/synchronized_norms.hpp"
#include "config/gpu/gpu_choice.hpp"
#include "config/resizing/aspect_groups.hpp"
#include "config/resizing/progressive_options.hpp"
#include "job/spec/data_facts.hpp"
#include "job/spec/newest_start.hpp"
#include "opening.hpp"
#include "steps_file.hpp"

namespace dtrain::job {
namespace {

// Where the batch follows the workers, only the course of the run says how many steps its epochs had. Without its
// records, the checkpoint does: it counts the updates since the optimizer began.
StepNumbers earlier_steps(const TrainRun& run, const Path& records) {
  StepNumbers numbers;
  try {
    numbers = step_numbers_in(records);
  } catch (const Error&) {  // the next line that is written there says what is wrong with the disk
  }
  if (!run.start || numbers.last_of(run.start->cursor.epoch) > 0) return numbers;
  const train::Cursor& cursor = run.start->cursor;
  const std::uint64_t updates = run.start->state.updates;
  if (updates > 0 && updates >= cursor.step)
    numbers.begin_at(cursor.epoch, static_cast<double>(cursor.step), static_cast<double>(updates));
  return numbers;
}

// A round of local steps is one step of the run, and several updates.
std::uint64_t steps_until(const TrainRun& run) {
  const auto updates = static_cast<std::uint64_t>(std::max(1, run.options.local.steps));
  return run.start ? run.start->state.updates / updates : 0;
}

}  // namespace

RunWatch::RunWatch(Reporter& reporter, const TrainRun& run, const std::optional<Path>& steps)
    : reporter_(reporter),
      run_(run),
      log_(reporter, run.options, run.graph),
      best_(run.start ? run.start->best : train::BestEpoch{}),
      json_(reporter) {
  observers_.add(log_);
  observers_.add(best_);
  if (reporter.json()) observers_.add(json_);
  if (const auto& folder = run.options.tensorboard) {
    const bool looks_back = steps && run.options.job.is_per_worker();
    observers_.add(board_.emplace(*folder, run.options.data, run.options.resume, reporter,
                                  looks_back ? earlier_steps(run, *steps) : StepNumbers(), steps_until(run)));
  }
}

namespace {

OpeningData opening_data(const Path& files) { return {data::shown_files(files), count_records(files)}; }

OpeningFacts facts_of(const TrainRun& run, int workers) {
  const config::TrainOptions& options = run.options;
  const config::ComputeOptions& compute = options.compute;
  const bool per_worker = options.job.has_own_batches();
  OpeningFacts facts{.training = opening_data(run.sources.train),
                     .num_examples = options.data.num_examples,
                     .synthetic = options.benchmark,
                     .network = run.graph.name,
                     .parameters = run.graph.parameter_count,
                     .image = run.graph.input(),
                     .classes = run.graph.classes(),
                     .detects = nn::detection_of(run.graph) != nullptr,
                     .grouped = !run.options.data.aspect_groups.empty(),
                     .epochs = options.epochs,
                     .batch = per_worker ? config::batch_of_worker(compute) : compute.samples_per_step(),
                     .batch_per_worker = per_worker,
                     .shards = compute.logical_shards,
                     .hosts = compute.hosts,
                     .workers = workers,
                     .threads = compute.threads,
                     .dtype = backend::dtype_name(run.dtype),
                     .average = options.optimizer.average};
  if (run.sources.validation) facts.validation = opening_data(*run.sources.validation);
  if (const auto gpu = config::gpu_of_slot(compute, 0))
    facts.gpus = compute.gpus.empty() ? std::to_string(*gpu) : compute.gpus;
  const bool trains =
      run.start ? !train::is_over(run.start->cursor, run.start->best, config::trainer_options(options, run.dtype))
                : options.epochs > 0;
  if (options.model_prefix && trains) {
    facts.begins_at = run.start ? run.start->cursor.epoch : 0;
    facts.checkpoint = train::CheckpointName{*options.model_prefix, facts.begins_at + 1}.stem();
  }
  return facts;
}

void show_details(const TrainRun& run, Reporter& reporter) {
  const config::ComputeOptions& compute = run.options.compute;
  const int shards = compute.logical_shards;
  reporter.detail(fmt::format("dtrain {} on {}", DTRAIN_VERSION, run.backend->description()));
  if (run.options.job.is_per_worker()) {
    reporter.detail(fmt::format("The learning rate follows the batch: {}",
                                enum_name(train::kElasticRateNames, run.options.job.rate)));
  } else if (!run.options.job.is_asynchronous()) {
    reporter.detail(fmt::format("G = {} samples a step in V = {} logical {}; {}", compute.samples_per_step(), shards,
                                shards == 1 ? "shard" : "shards", config::efficiency_line(shards)));
  }
  const config::DataOptions& data = run.options.data;
  const auto mask = static_cast<std::uint64_t>(data.image.h) * static_cast<std::uint64_t>(data.image.w);
  reporter.detail(fmt::format("setting 'prefetch' {}: up to {} of samples in the memory of each worker{}",
                              data.prefetch, format_bytes(buffer_bytes_of(run)),
                              data.detection && data.detection->masks
                                  ? fmt::format(", and {} for the mask of each object in them", format_bytes(mask))
                                  : ""));
  const std::uint64_t decoded = config::training_loader(data, compute.seed).decoded_cache;
  if (decoded > 0) {
    reporter.detail(fmt::format("setting 'cache-decoded' {}: up to {} of decoded images in the memory of each worker",
                                data.cache_decoded_gib, format_bytes(decoded)));
  }
}

}  // namespace

void show_opening(const TrainRun& run, int workers, Reporter& reporter) {
  for (const std::string& line : opening_lines(facts_of(run, workers))) reporter.note(line);
  const train::LocalSteps& local = run.options.local;
  if (run.options.job.is_by_servers()) reporter.note(config::servers_line(run.options.job));
  if (run.options.resizing.any()) reporter.note(config::progressive_line(run.options.resizing, run.graph.input()));
  if (!run.options.data.aspect_groups.empty()) reporter.note(config::aspect_groups_line(run.options.data));
  const int shards = run.options.compute.logical_shards;
  if (nn::has_synchronized_norms(run.graph)) reporter.note(config::synchronized_norms_line(shards));
  if (local.any()) reporter.note(config::local_steps_line(local, shards));
  if (const auto& compression = run.options.job.compression; compression.any())
    reporter.note(config::compression_line(compression));
  show_details(run, reporter);
}

void RunWatch::begin(int workers) {
  saw_begin_ = true;
  if (board_ && !run_.options.resume) board_->begin_anew();
  show_opening(run_, workers, reporter_);
  if (reporter_.json()) reporter_.answer_json(start_event(workers));
}

Json RunWatch::start_event(int workers) const {
  const config::ComputeOptions& compute = run_.options.compute;
  const config::JobOptions& job = run_.options.job;
  Json event = Json::object({{"schema", "dtrain.train/1"},
                             {"event", "start"},
                             {"version", DTRAIN_VERSION},
                             {"network", run_.graph.name},
                             {"parameters", run_.graph.parameter_count},
                             {"dtype", backend::dtype_name(run_.dtype)},
                             {"workers", workers},
                             {"threads", compute.threads},
                             {"global_batch", compute.samples_per_step()},
                             {"logical_shards", compute.logical_shards},
                             {"local_steps", run_.options.local.steps},
                             {"servers", job.is_by_servers() ? job.servers.value_or(0) : 0},
                             {"seed", compute.seed}});
  if (run_.options.top_k > 0) event["top_k"] = run_.options.top_k;
  return event;
}

// That of `result`: where the run saved none, the one that it began with and did not go beyond.
std::optional<Path> RunWatch::checkpoint_of(const train::TrainResult& result) const {
  if (log_.last_checkpoint()) return log_.last_checkpoint();
  const bool went_on = !run_.start || run_.start->cursor != result.cursor;
  const auto begin = went_on ? std::nullopt : begin_of(run_);
  return begin ? std::optional<Path>(begin->stem() + ".safetensors") : std::nullopt;
}

Json RunWatch::result_event(const train::TrainResult& result, bool has_best) const {
  const std::optional<train::Diverged> broken = train::divergence_at_end(result, has_same_bits(run_));
  Json json = Json::object({{"schema", "dtrain.train/1"},
                            {"event", "result"},
                            {"exit_code", static_cast<int>(broken ? broken->exit_code() : ExitCode::ok)},
                            {"epochs", std::int64_t{result.cursor.epoch}}});
  const auto checkpoint = checkpoint_of(result);
  json["checkpoint"] = checkpoint ? Json(checkpoint->string()) : Json();
  const train::BestEpoch& best = best_.best();
  json["best"] = has_best ? Json::object({{"epoch", std::int64_t{best.epoch}}, {"accuracy", best.accuracy}}) : Json();
  if (!result.evaluation) {
    json["evaluation"] = Json();
    return json;
  }
  Json evaluation = Json::object({});
  const Json report = train::to_json(*result.evaluation);
  for (const auto& [key, value] : report.as_object()) {
    if (key != "event") evaluation[key] = value;
  }
  json["evaluation"] = std::move(evaluation);
  return json;
}

void RunWatch::end(const train::TrainResult& result) {
  std::string line = count_text(result.cursor.epoch, "epoch") + " trained";
  if (result.evaluation && result.evaluation->boxes) {
    line += fmt::format("; validation AP {:.6f}", result.evaluation->boxes->ap);
    if (result.evaluation->masks) line += fmt::format(", of masks {:.6f}", result.evaluation->masks->ap);
  } else if (result.evaluation) {
    line +=
        fmt::format("; validation accuracy {:.6f}, loss {:.6f}", result.evaluation->accuracy, result.evaluation->loss);
  }
  if (const auto checkpoint = checkpoint_of(result)) line += fmt::format("; checkpoint {}", checkpoint->string());
  const std::string best =
      train::best_words(best_.best(), result.cursor.epoch, config::trainer_options(run_.options, run_.dtype));
  const bool has_best = saw_begin_ && !best.empty();
  if (has_best) line += "; " + best;
  if (reporter_.json()) return reporter_.answer_json(result_event(result, has_best));
  reporter_.answer(line);
}

}  // namespace dtrain::job
