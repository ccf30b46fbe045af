#include "train_work.hpp"

#include <fmt/format.h>

#include <utility>

#include "config/gpu/gpu_choice.hpp"
#include "job/spec/newest_start.hpp"

namespace dtrain::job {
namespace {

// Weights, two numbers of the optimizer for each of them, and their average; read or written where that is slow.
constexpr std::int64_t kStateBytes = 4 * sizeof(float), kSlowBytesPerSecond = 64 << 20;

elastic::Duration time_to_move_state(const TrainRun& run) {
  return std::chrono::seconds(kStateBytes * run.graph.parameter_count / kSlowBytesPerSecond);
}

}  // namespace

TrainWork::TrainWork(TrainRun run, const JobFolder& folder, Reporter& reporter)
    : run_(std::move(run)),
      folder_(folder),
      reporter_(reporter),
      watch_(reporter, run_, folder.steps()),
      last_(folder, run_.options.model_prefix, !run_.options.job.is_by_servers()),
      steps_(folder.steps()),
      news_(watch_.observers()) {
  watch_.observers().add(last_);
  watch_.observers().add(steps_);  // last, so that a full disk affects no other observer
}

void TrainWork::adjust(elastic::Policy& policy) const {
  const config::TrainOptions& options = run_.options;
  const elastic::Duration moving = time_to_move_state(run_);
  policy.stop_timeout += moving;
  policy.worker_grace += moving;
  policy.prepare_timeout += moving;  // a worker that starts reads the newest checkpoint
  if (!options.job.is_per_worker()) {
    policy.step_size.constant =
        options.job.is_asynchronous() ? config::batch_of_worker(options.compute) : options.compute.samples_per_step();
    return;
  }
  policy.step_size.per_worker = config::batch_of_worker(options.compute);
  const bool follows = options.job.rate != train::ElasticRate::none;
  policy.step_size.rate_batch = follows ? options.compute.samples_per_step() : 0;
}

int TrainWork::slots() const { return config::workers_of_host(run_.options.compute); }

void TrainWork::begin(int workers) {
  watch_.begin(workers);
  last_.begin(begin_of(run_));
  steps_.begin(run_.options.resume);
}

void TrainWork::show(const Json& report) {
  const train::ReportEvent event = train::report_from_json(report);
  if (const auto* step = std::get_if<train::StepReport>(&event)) last_.on_trained(*step);
  news_.on_event(event);
}

void TrainWork::show_output(const std::string& worker, OutputStream, std::string_view line) {
  reporter_.note(fmt::format("[{}] {}", worker, line));
}

void TrainWork::end() {
  steps_.end();
  if (!last_.unsaved().empty()) throw Error(last_.unsaved(), what_next());
  const train::TrainerOptions options = config::trainer_options(run_.options, run_.dtype);
  train::TrainResult result;
  const bool may_end_early = run_.options.early_stop > 0 && last_.evaluation;
  result.cursor.epoch = may_end_early ? last_.evaluation->epoch + 1 : static_cast<std::uint32_t>(run_.options.epochs);
  const bool was_over =
      run_.start && !last_.evaluation && train::is_over(run_.start->cursor, run_.start->best, options);
  // An evaluation that was due where the run began may have been its last one.
  if (was_over || (run_.start && result.cursor.epoch <= run_.start->cursor.epoch)) result.cursor = run_.start->cursor;
  result.evaluation = last_.evaluation;
  watch_.end(result);
  if (const auto broken = train::divergence_at_end(result, has_same_bits(run_))) throw train::Diverged(*broken);
}

std::string TrainWork::first_signal_words() const {
  return "Stopping: the workers finish their step and save; once more ends everything at once";
}

std::string TrainWork::what_next() {
  if (!keeps()) return "give --model-prefix to keep what was trained";
  if (last_.has_checkpoint()) return "run the same command with --resume to continue, with any number of workers";
  return "no checkpoint was saved: the same command begins again";
}

}  // namespace dtrain::job
