// What the ranks of a run agree on between steps, besides the model's own state, and what of it travels to a newcomer.
#pragma once

#include <chrono>
#include <set>
#include <vector>

#include <dtrain/elastic/membership.hpp>
#include <dtrain/train/plan.hpp>
#include <dtrain/train/report_json.hpp>
#include <dtrain/train/run_ends.hpp>

namespace dtrain::train {

struct RunState {
  Cursor cursor;
  // With parameter servers and after a loss: numbers of batches behind the cursor that are trained already. A
  // checkpoint does not know them: a run that is resumed trains them again.
  std::set<std::uint64_t> ahead;
  RateRamp ramp;
  int batch = 0;                               // samples of a step in the newest generation; does not travel
  backend::StepMetrics totals;                 // sums over the epoch's steps so far
  std::chrono::duration<double> epoch_time{};  // spent on the epoch's steps so far
  std::optional<EvaluationReport> evaluation;  // the last one
  BestEpoch best;                              // of a run with validation data
  // Reports of the last step whose end all ranks reached, and of the step after it, which some may not have applied.
  std::vector<ReportEvent> settled, pending;

  void add(const backend::StepMetrics& step);
  void begin_next_epoch();
};

// `start` may be null: fresh weights; so may `validation`. Throws what starting_cursor() and require_record_order()
// throw.
RunState start_of_run(const Checkpoint* start, const data::Loader& training, const data::Loader* validation,
                      const TrainerOptions& options);

// The step of the epoch that trains a batch of the parameter servers. Batches are numbered by their samples, from the
// epoch's begin; a run that was resumed with another batch size has made another number of steps to get there.
std::uint64_t step_of_batch(const RunState& run, const EpochPlan& plan, std::uint64_t number);
std::set<std::uint64_t> steps_ahead(const RunState& run, const EpochPlan& plan);  // those of run.ahead

elastic::TrainingPosition training_position_of(const RunState& run);  // of a rank that has state

// The share of correct samples; NaN while a detector trains.
double accuracy_of(const nn::Graph& graph, double correct, double count);

bool is_over(const RunState& run, const TrainerOptions& options);

// Exact round trips. Reading throws DataError.
Json to_json(const std::vector<ReportEvent>& events);
std::vector<ReportEvent> events_from(const Json& json);
Json to_json(const RunState& run);
RunState run_state_from_json(const Json& json);

}  // namespace dtrain::train
