// When a generation saves, and how it stops.
#include <utility>

#include "generation.hpp"

namespace dtrain::train {

using elastic::Phase;

namespace {

using namespace std::chrono_literals;
constexpr auto kWaitInterval = 1s;  // of ranks that wait for rank 0

}  // namespace

void Generation::save(const RunState& run) {
  const auto sign_of_life = [this] { context_.membership.progress(Phase::saving); };
  sign_of_life();
  context_.saver.save(run, number_, sign_of_life);
}

// Before another rank may save: reports of checkpoints then come in their order.
void Generation::report_saves() {
  context_.saver.settle([this] { context_.membership.progress(Phase::saving); });
  context_.reporter.tell(context_.saver.news());
}

void Generation::finish_saving() {
  context_.saver.finish(context_.options.save_patience, [this] { context_.membership.progress(Phase::saving); });
}

// Where a window ends that has such a step in it, which may not be its last one.
bool Generation::save_is_due() const {
  const std::uint64_t every = context_.options.checkpoint_every_steps, step = run_.cursor.step;
  if (every == 0 || step == 0 || !speaks()) return false;
  const auto window = static_cast<std::uint64_t>(window_steps());
  const std::uint64_t before = (step - 1) / window * window;
  return step / every > before / every && run_.cursor.position < plan_.samples &&
         !context_.saver.has_taken(run_.cursor);
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
  if (!speaks()) {
    while (gather_saving(false)) {
    }
    return;
  }
  if (!context_.saver.has_taken(run_.cursor)) save(run_);
  auto next = Clock::now() + kWaitInterval;
  context_.saver.finish(context_.options.save_patience, [&] {
    context_.membership.progress(Phase::saving);
    if (Clock::now() < next) return;
    gather_saving(true);
    next = Clock::now() + kWaitInterval;
  });
  tell(context_.saver.news());
  gather_saving(false);
}

// Whether rank 0 still saves. Others ask again and again, because a gathering has a deadline, and saving may take
// longer.
bool Generation::gather_saving(bool saves) {
  if (comm_.size() == 1) return false;
  if (!speaks()) context_.membership.progress(Phase::reducing);
  const std::byte mine{saves};
  return comm_.all_gather(std::span(&mine, 1)).front() != std::string(1, '\0');
}

}  // namespace dtrain::train
