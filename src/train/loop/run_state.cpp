#include "run_state.hpp"

#include <fmt/format.h>

#include <limits>

#include "checkpoint/manifest.hpp"

namespace dtrain::train {

Json to_json(const std::vector<ReportEvent>& events) {
  Json::Array list;
  for (const ReportEvent& event : events) list.push_back(to_json(event));
  return Json(std::move(list));
}

std::vector<ReportEvent> events_from(const Json& json) {
  std::vector<ReportEvent> events;
  for (const Json& event : json.as_array()) events.push_back(report_from_json(event));
  return events;
}

// Without checkpoints none will be compared with it.
static ValidationSet validation_set(const data::Loader& validation, const TrainerOptions& options) {
  ValidationSet set{.samples = validation.size(), .views = options.test_views};
  if (options.checkpoint_prefix) set.records = validation.record_order();
  return set;
}

// One number would mix the counts of both. Empty: the sums of the checkpoint count on.
static std::string other_top_k(const Checkpoint& start, const TrainerOptions& options) {
  const int saved = start.top_k.value_or(options.top_k);
  if (start.epoch_totals.count == 0 || options.top_k == 0 || saved == options.top_k) return {};
  return fmt::format(
      "the checkpoint was saved inside an epoch with setting 'top-k' {}, not {}: the loss and the "
      "accuracies of this epoch are those of its other steps",
      saved, options.top_k);
}

RunState start_of_run(const Checkpoint* start, const data::Loader& training, const data::Loader* validation,
                      const TrainerOptions& options) {
  RunState run;
  const auto here = validation ? std::optional(validation_set(*validation, options)) : std::nullopt;
  if (start) {
    const std::uint64_t samples = training.size();
    run.cursor = starting_cursor(*start, samples);
    require_record_order(*start, [&] { return training.record_order(); });
    run.ramp = start->ramp;
    run.totals = start->epoch_totals;
    if (const std::string other = other_top_k(*start, options); !other.empty()) {
      run.totals = {};
      run.settled.emplace_back(WarningReport{.text = other, .is_note = true});
    }
    run.best = starting_best(*start, here ? &*here : nullptr, options.resumes);
    if (const std::string other = other_samples(*start, samples); !other.empty())
      run.settled.emplace_back(WarningReport{other + ": the rates go on by whole epochs"});
    for (const std::string& note : notes_on_best(*start, here ? &*here : nullptr, options))
      run.settled.emplace_back(WarningReport{.text = note, .is_note = true});
  }
  if (here) run.best.data = here;
  return run;
}

void RunState::add(const backend::StepMetrics& step) {
  totals.loss_sum += step.loss_sum;
  totals.correct += step.correct;
  totals.top_k_correct += step.top_k_correct;
  totals.count += step.count;
}

double accuracy_of(const nn::Graph& graph, double correct, double count) {
  return nn::detection_of(graph) ? std::numeric_limits<double>::quiet_NaN() : correct / count;
}

void RunState::begin_next_epoch() {
  cursor = {.epoch = cursor.epoch + 1, .step = 0, .samples_seen = cursor.samples_seen, .position = 0};
  ahead = {};
  totals = {};
  epoch_time = {};
}

bool is_over(const RunState& run, const TrainerOptions& options) { return is_over(run.cursor, run.best, options); }

// The difference is the same over an epoch. It may be negative: unsigned numbers wrap around and back.
std::uint64_t step_of_batch(const RunState& run, const EpochPlan& plan, std::uint64_t number) {
  const std::uint64_t next = run.cursor.position / static_cast<std::uint64_t>(plan.global_batch);
  return number + run.cursor.step - next;
}

std::set<std::uint64_t> steps_ahead(const RunState& run, const EpochPlan& plan) {
  std::set<std::uint64_t> steps;
  for (const std::uint64_t number : run.ahead) steps.insert(step_of_batch(run, plan, number));
  return steps;
}

elastic::TrainingPosition training_position_of(const RunState& run) {
  return {
      .has_state = true, .epoch = run.cursor.epoch, .step = run.cursor.step, .samples_seen = run.cursor.samples_seen};
}

Json to_json(const RunState& run) {
  Json json = Json::object({{"epoch", run.cursor.epoch},
                            {"step", run.cursor.step},
                            {"samples_seen", run.cursor.samples_seen},
                            {"position", run.cursor.position},
                            {"ahead", Json::Array(run.ahead.begin(), run.ahead.end())},
                            {"ramp", to_json(run.ramp)},
                            {"totals", totals_json(run.totals)},
                            {"best", to_json(run.best)},
                            {"epoch_seconds", run.epoch_time.count()},
                            {"settled", to_json(run.settled)},
                            {"pending", to_json(run.pending)}});
  if (run.evaluation) json["evaluation"] = to_json(*run.evaluation);
  return json;
}

RunState run_state_from_json(const Json& json) {
  const auto count = [&](const char* key) { return static_cast<std::uint64_t>(json.at(key).as_integer()); };
  RunState run;
  run.cursor = {.epoch = static_cast<std::uint32_t>(count("epoch")),
                .step = count("step"),
                .samples_seen = count("samples_seen"),
                .position = count("position")};
  for (const Json& number : json.at("ahead").as_array()) {
    run.ahead.insert(static_cast<std::uint64_t>(number.as_integer()));
  }
  run.ramp = ramp_from_json(json.at("ramp"));
  run.totals = totals_from(json.at("totals"));
  run.best = best_from(json.at("best"));
  run.epoch_time = std::chrono::duration<double>(json.at("epoch_seconds").as_number());
  run.settled = events_from(json.at("settled"));
  run.pending = events_from(json.at("pending"));
  if (const Json* found = json.find("evaluation"))
    run.evaluation = std::get<EvaluationReport>(report_from_json(*found));
  return run;
}

}  // namespace dtrain::train
