// When a generation saves, and how it stops.
#include <algorithm>
#include <utility>

#include "generation.hpp"

namespace dtrain::train {

using elastic::Phase;

void Generation::save(const RunState& run, const Saver::SignOfLife& alive) {
  context_.membership.progress(Phase::saving);
  context_.saver.save(run, number_, alive);
}

// Where all ranks come and one of them may have to wait for files in `work`. The others ask again and again, because a
// gathering has a deadline, and saving may take longer.
void Generation::save_together(const std::function<void(const Saver::SignOfLife&)>& work) {
  work([this] {
    context_.membership.progress(Phase::saving);
    context_.membership.require_generation();
    gather_saving(true);
  });
  while (gather_saving(false)) {
  }
}

// Whether any rank still saves.
bool Generation::gather_saving(bool saves) {
  if (comm_.size() == 1) return false;
  if (!saves) context_.membership.progress(Phase::reducing);
  const std::byte mine{saves};
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
  save_together([this](const Saver::SignOfLife& alive) {
    if (speaks() && !context_.saver.has_taken(run_.cursor)) save(run_, alive);
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

// Only between steps, so what is saved is a state that an undisturbed run passes through too. The other ranks have it
// until rank 0 has written it: where rank 0 is lost before, the gathering fails, and each of them saves.
void Generation::stop() {
  if (!run_.pending.empty()) {
    run_.settled = std::exchange(run_.pending, {});
    tell(run_.settled);
  }
  save_together([this](const Saver::SignOfLife& alive) {
    if (!speaks()) return;
    if (!context_.saver.has_taken(run_.cursor)) save(run_, alive);
    context_.saver.finish(context_.options.save_patience, alive);
    tell(context_.saver.news());
  });
}

}  // namespace dtrain::train
