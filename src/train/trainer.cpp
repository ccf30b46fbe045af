#include <dtrain/train/trainer.hpp>

#include <fmt/format.h>

#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/nn/initialize.hpp>

#include "saver.hpp"
#include "step.hpp"

namespace dtrain::train {
namespace {

using Clock = std::chrono::steady_clock;

backend::ModelState fresh_state(const nn::Graph& graph, const TrainerOptions& options) {
  backend::ModelState state;
  state.parameters.resize(static_cast<std::size_t>(graph.parameter_count));
  state.statistics.resize(static_cast<std::size_t>(graph.statistic_count));
  state.optimizer.resize(state.parameters.size() *
                         static_cast<std::size_t>(nn::optimizer_slots(options.optimizer.kind)));
  nn::initialize_parameters(graph, options.seed, state.parameters);
  nn::initialize_statistics(graph, state.statistics);
  return state;
}

// Sums of metrics since the epoch began.
struct Totals {
  backend::StepMetrics sum;
  void add(const backend::StepMetrics& step) {
    sum.loss_sum += step.loss_sum;
    sum.correct += step.correct;
    sum.top_k_correct += step.top_k_correct;
    sum.count += step.count;
  }
};

class Run {
 public:
  Run(const nn::Graph& graph, backend::Executable& executable, data::Loader& training, data::Loader* validation,
      comm::Communicator& comm, const TrainerOptions& options, Observer& observer)
      : executable_(executable),
        training_(training),
        validation_(validation),
        comm_(comm),
        options_(options),
        observer_(observer),
        plan_{training.size(), options.global_batch, options.logical_shards},
        step_(graph, executable, comm, options.logical_shards),
        saver_(graph, executable, options, plan_.samples, observer) {}

  TrainResult train_from(Cursor cursor) {
    cursor_ = cursor;
    // A checkpoint that came from MXNet does not know it; the schedule must.
    if (cursor_.samples_seen == 0) cursor_.samples_seen = cursor_.epoch * plan_.samples;
    while (cursor_.epoch < options_.epochs) {
      train_epoch();
      const bool saved = comm_.rank() == 0 && saver_.save(cursor_);
      if (validation_) validate();
      stop_if_asked(saved);
    }
    return {cursor_, last_evaluation_};
  }

 private:
  void train_epoch() {
    const Clock::time_point begin = Clock::now();
    Totals totals;
    start_loading();
    const std::uint64_t steps = plan_.steps();
    while (cursor_.step < steps) {
      totals.add(train_step(steps));
      const bool saved = cursor_.step < steps && save_is_due() && saver_.save(cursor_);
      if (cursor_.step < steps) stop_if_asked(saved);
    }
    report_epoch(totals, Clock::now() - begin);
    cursor_ = {cursor_.epoch + 1, 0, cursor_.samples_seen};
  }

  void start_loading() {
    std::vector<data::Slice> slices;
    for (std::uint64_t step = cursor_.step; step < plan_.steps(); ++step) {
      const data::Slice slice = rank_step(plan_, step, comm_.rank(), comm_.size()).slice;
      if (slice.count > 0) slices.push_back(slice);
    }
    training_.start(cursor_.epoch, std::move(slices));
  }

  backend::StepMetrics train_step(std::uint64_t steps) {
    const Clock::time_point begin = Clock::now();
    const RankStep mine = rank_step(plan_, cursor_.step, comm_.rank(), comm_.size());
    const std::optional<data::Batch> batch = mine.slice.count > 0 ? training_.next() : data::Batch{};
    DTRAIN_CHECK(batch && batch->n == mine.slice.count, "the loader gave another batch than asked for");
    if (!first_batch_seen_) observer_.on_first_batch(*batch);
    first_batch_seen_ = true;

    const std::span<const float> contribution = step_.contribute(
        {batch->n, batch->images, batch->labels, batch->sample_ids}, mine.shards, {options_.seed, cursor_.epoch});
    const backend::StepMetrics metrics = step_.metrics();
    const double rate = options_.schedule.rate(cursor_.samples_seen, plan_.samples);
    refuse_unless_finite(metrics, rate);
    executable_.apply(contribution, {options_.optimizer, static_cast<float>(rate)});

    cursor_.samples_seen += static_cast<std::uint64_t>(metrics.count);
    report_step(metrics, rate, steps, Clock::now() - begin);
    ++cursor_.step;
    return metrics;
  }

  void refuse_unless_finite(const backend::StepMetrics& metrics, double rate) const {
    if (std::isfinite(metrics.loss_sum)) return;
    throw Error(fmt::format("the loss is not finite at epoch {} step {} with learning rate {:g}", cursor_.epoch,
                            cursor_.step, rate),
                "the step was not applied and the last checkpoint is good: resume from it with a smaller --lr");
  }

  bool save_is_due() const {
    const std::uint64_t every = options_.checkpoint_every_steps;
    return every > 0 && comm_.rank() == 0 && cursor_.step % every == 0;
  }

  // Only between steps, so what is saved is a state that an undisturbed run passes through too.
  void stop_if_asked(bool saved) {
    if (stop_signal() == 0 || cursor_.epoch >= options_.epochs) return;
    if (!saved) saved = comm_.rank() == 0 && saver_.save(cursor_);
    const std::string where = fmt::format("stopped by a signal at epoch {} step {}", cursor_.epoch, cursor_.step);
    if (saved) throw Stopped(where + ", checkpoint saved", "the same command with --resume goes on from here");
    throw Error(where + ", nothing saved", "give --model-prefix to keep what was trained");
  }

  void validate() {
    EvaluationReport report = evaluate(executable_, *validation_, options_.evaluation_block, comm_);
    report.epoch = cursor_.epoch - 1;
    observer_.on_evaluation(report);
    last_evaluation_ = report;
  }

  void report_step(const backend::StepMetrics& m, double rate, std::uint64_t steps, Clock::duration time) {
    observer_.on_step({.epoch = cursor_.epoch,
                       .step = cursor_.step,
                       .steps = steps,
                       .samples = static_cast<int>(m.count),
                       .samples_seen = cursor_.samples_seen,
                       .loss = m.loss_sum / m.count,
                       .accuracy = m.correct / m.count,
                       .top_k_accuracy = m.top_k_correct / m.count,
                       .learning_rate = rate,
                       .time = time});
  }

  void report_epoch(const Totals& totals, Clock::duration time) {
    const backend::StepMetrics& m = totals.sum;
    observer_.on_epoch({.epoch = cursor_.epoch,
                        .loss = m.loss_sum / m.count,
                        .accuracy = m.correct / m.count,
                        .top_k_accuracy = m.top_k_correct / m.count,
                        .time = time});
  }

  backend::Executable& executable_;
  data::Loader& training_;
  data::Loader* validation_;
  comm::Communicator& comm_;
  const TrainerOptions& options_;
  Observer& observer_;
  const EpochPlan plan_;
  StepRunner step_;
  Saver saver_;
  Cursor cursor_;
  bool first_batch_seen_ = false;
  std::optional<EvaluationReport> last_evaluation_;
};

}  // namespace

TrainResult train(const nn::Graph& graph, backend::Executable& executable, data::Loader& training,
                  data::Loader* validation, comm::Communicator& comm, const TrainerOptions& options,
                  const Checkpoint* start, Observer& observer) {
  executable.write_state(start ? start->state : fresh_state(graph, options));
  Run run(graph, executable, training, validation, comm, options, observer);
  return run.train_from(start ? start->cursor : Cursor{});
}

}  // namespace dtrain::train
