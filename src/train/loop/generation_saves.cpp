// When a generation saves, and how it stops.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "generation.hpp"

namespace dtrain::train {

using elastic::Phase;

namespace {

// Much less than ranks wait for each other, and much more than a gathering takes.
constexpr std::chrono::milliseconds kBetweenAnswers{200};

}  // namespace

void Generation::save(const RunState& run, const Saver::SignOfLife& alive) {
  context_.membership.progress(Phase::saving);
  context_.saver.save(run, number_, alive);
}

// Where all ranks come, and some may be at `work` for longer than others: they wait for files, or compute slowly. A
// gathering has a deadline, so those that are done ask again and again, and those that work answer now and then when
// they give a sign of life. Each gathering is one of all ranks, and the first in which all are done is the last, so
// their number is the same everywhere.
void Generation::work_together(Phase phase, const std::function<void(const Saver::SignOfLife&)>& work) {
  Clock::time_point next = Clock::now() + kBetweenAnswers;
  work([&] {
    context_.membership.progress(phase);
    context_.membership.require_generation();
    if (Clock::now() < next) return;
    gather_working(true);
    context_.membership.progress(phase);
    next = Clock::now() + kBetweenAnswers;
  });
  while (gather_working(false)) {
  }
}

void Generation::save_together(const std::function<void(const Saver::SignOfLife&)>& work) {
  work_together(Phase::saving, work);
}

// Whether any rank still works. A rank that waits here is not the one that is late.
bool Generation::gather_working(bool works) {
  if (comm_.size() == 1) return false;
  context_.membership.progress(Phase::reducing);
  const std::byte mine{works};
  const std::vector<std::string> all = comm_.all_gather(std::span(&mine, 1));
  return std::ranges::any_of(all, [](const std::string& text) { return text != std::string(1, '\0'); });
}

// Before another rank may save: reports of checkpoints then come in their order.
void Generation::report_saves() {
  save_together([this](const Saver::SignOfLife& alive) { context_.saver.settle(alive); });
  context_.reporter.tell(context_.saver.news());
}

// Rank 0 waits where the save before is still being written.
void Generation::save_where_due() {
  if (!save_is_due()) return;
  require_finite_weights();
  save_together([this](const Saver::SignOfLife& alive) {
    if (speaks() && !context_.saver.has_taken(run_.cursor)) save(run_, alive);
  });
}

// The rank 0 of the generation before may have saved this state, and the run may have begun with it, from another
// prefix. Writing a checkpoint again removes it for a while.
void Generation::make_up_for_a_save() {
  if (!save_is_due()) return;
  require_finite_weights();
  save_together([this](const Saver::SignOfLife& alive) {
    const bool is_there = context_.saver.has_taken(run_.cursor) || run_.cursor == context_.start;
    if (!speaks() || is_there) return;
    context_.membership.progress(Phase::saving);
    context_.saver.save_unless_there(run_, number_, alive);
  });
}

// Where a window ends that has such a step in it, which may not be its last one. The same on all ranks.
bool Generation::save_is_due() const {
  const std::uint64_t every = context_.options.checkpoint_every_steps, step = run_.cursor.step;
  if (every == 0 || step == 0) return false;
  const auto window = static_cast<std::uint64_t>(window_steps());
  const std::uint64_t before = (step - 1) / window * window;
  return step / every > before / every && run_.cursor.position < plan_.samples;
}

bool has_checkpoint(const RunContext& context, const Cursor& cursor) {
  const std::uint64_t every = context.options.checkpoint_every_steps;
  if (!context.options.checkpoint_prefix) return false;
  return context.began_trained || cursor.epoch > 0 || (every > 0 && cursor.step >= every);
}

// Whether no update was applied since the last checkpoint, which may still be written. Rounds update the weights that
// their loss is of. The same on all ranks.
bool Generation::is_at_checkpoint() const {
  if (context_.local) return false;
  const Cursor& cursor = run_.cursor;
  if (context_.began_trained && cursor == context_.start) return true;
  if (cursor.step == 0) return cursor.epoch > 0;
  const bool is_inside_window = cursor.step % static_cast<std::uint64_t>(window_steps()) != 0;
  return !is_inside_window && save_is_due();
}

std::string way_out_of_divergence(const RunContext& context, const RunState& run, bool is_at_checkpoint) {
  const TrainerOptions& options = context.options;
  const Cursor& cursor = run.cursor;
  if (!has_checkpoint(context, cursor))
    return "no checkpoint has been saved yet: begin again with a smaller setting 'lr'";
  const std::uint64_t every = options.checkpoint_every_steps;
  const bool is_last_of_epoch_end = every == 0 || cursor.step < every;
  const bool was_evaluated = run.evaluation && run.evaluation->epoch + 1 == cursor.epoch &&
                             run.evaluation->samples > 0 && !nn::detection_of(context.graph);
  const bool is_bad = is_last_of_epoch_end && was_evaluated && !std::isfinite(run.evaluation->loss);
  if (!is_at_checkpoint && !is_bad)
    return "nothing of it was saved and the last checkpoint is good: resume from it with a smaller setting 'lr'";
  const CheckpointName bad{*options.checkpoint_prefix, cursor.epoch, is_at_checkpoint ? cursor.step : 0};
  const bool may_have_older = cursor.epoch > (bad.step > 0 ? 0u : 1u) && options.keep_checkpoints != 1;
  return fmt::format("the weights of {} give no finite loss: begin again with a smaller setting 'lr'{}", bad.stem(),
                     may_have_older ? ", or take an older one (setting 'load-epoch' N setting 'force')" : "");
}

// Only between steps, so what is saved is a state that an undisturbed run passes through too. The other ranks have it
// until rank 0 has written it: where rank 0 is lost before, the gathering fails, and each of them saves.
void Generation::stop() {
  if (!run_.pending.empty()) {
    run_.settled = std::exchange(run_.pending, {});
    tell(run_.settled);
  }
  require_finite_weights();
  save_together([this](const Saver::SignOfLife& alive) {
    if (!speaks()) return;
    if (!context_.saver.has_taken(run_.cursor)) save(run_, alive);
    context_.saver.finish(context_.options.save_patience, alive);
    tell(context_.saver.news());
  });
}

}  // namespace dtrain::train
