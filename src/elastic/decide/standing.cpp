// What the job as a whole does, and pauses that last: a job that stands still must not look like one that trains.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr Duration kLongPause{3'000};      // ordinary changes take a tenth of a second
constexpr Duration kNoStep{5'000};         // after which the list of hosts says what the members do instead
constexpr Duration kStalled{10'000};       // wait of all members for each other
constexpr Duration kStalledFirst{30'000};  // the same before the first step of a generation: it may bring the state

std::size_t minimum_workers(const State& state) {
  return static_cast<std::size_t>(std::max(1, state.policy.min_workers));
}

// Members and ready workers, on hosts that are to stay.
std::size_t usable_workers(const State& state) {
  const auto counts = [&](const auto& entry) {
    const Worker& worker = entry.second;
    return (is_member(worker) || worker.phase == WorkerPhase::ready) && is_allotted(state, worker);
  };
  return static_cast<std::size_t>(std::ranges::count_if(state.workers, counts));
}

std::string too_few_workers(const State& state) {
  return fmt::format("it has {} of at least {}", count_of(usable_workers(state), "worker"), minimum_workers(state));
}

Duration left_of(Time since, Duration limit, Time now) {
  return std::max(std::chrono::duration_cast<Duration>(since + limit - now), Duration(0));
}

// The last step, or when the generation could begin to make some.
Time last_step(const State& state) {
  const Timeline& times = state.current->times;
  return std::max({state.last_progress, times.meshed.value_or(Time{}), times.switched.value_or(Time{})});
}

// A collective of the members does not end, while none of them has anything to do before it.
bool is_stalled(const State& state, Time now) {
  if (!state.current || state.freezing || state.current->members.empty()) return false;
  Seconds limit = state.current->stepped ? kStalled : kStalledFirst;
  for (const WorkerId id : state.current->members) {
    const auto found = state.workers.find(id);
    if (found == state.workers.end()) return false;
    const Worker& worker = found->second;
    if (worker.progress_at == Time{} || !waits_for_others(worker.progress.phase)) return false;
    limit = std::max(limit, Seconds(state.policy.hang_factor * worker.progress.step_seconds));
  }
  return now - std::max(last_step(state), state.heard_floor) > limit;
}

// What the members do that takes long: "evaluating, loading".
std::string activities(const State& state) {
  std::vector<std::string> names;
  for (const WorkerId id : state.current->members) {
    const auto found = state.workers.find(id);
    if (found == state.workers.end()) continue;
    const std::string name = phase_name(found->second.progress.phase);
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string seconds_since(Time since, Time now) {
  return fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(now - since).count());
}

// What a pause waits for.
std::string awaited_of(const State& state) {
  if (!all_frozen(state)) return fmt::format("{} to stop with the others", count_of(state.freezing->awaited, "worker"));
  if (state.change) return fmt::format("{} to connect", count_of(state.change->awaited, "worker"));
  return "a new generation";
}

void say_standing(DecisionContext& context, std::string text, std::string hint) {
  context.state.said_standing = true;
  context.say(std::move(text), std::move(hint), Say::Kind::warning);
}

}  // namespace

bool waits_for_others(Phase phase) {
  return phase == Phase::reducing || phase == Phase::entering || phase == Phase::holding;
}

Time work_ended(const DecisionContext& context, std::span<const WorkerId> members) {
  std::optional<Time> latest;
  for (const WorkerId id : members) {
    const auto found = context.state.workers.find(id);
    if (found == context.state.workers.end()) continue;
    const Worker& worker = found->second;
    Time worked = worker.heard;
    if (worker.progress_at != Time{}) {
      worked = std::min(worked, worker.progress_at);
      if (waits_for_others(worker.progress.phase))
        worked -= std::chrono::duration_cast<Time::duration>(Seconds(worker.progress.seconds_in_phase));
    }
    latest = std::max(latest.value_or(worked), worked);
  }
  return std::min(latest.value_or(context.now), context.now);
}

JobStanding standing_of(const State& state, Time now) {
  if (state.ending) return {JobPhase::ending, state.ending->reason};
  const Duration limit = state.policy.hold_timeout;
  if (state.cut_off) return {JobPhase::cut_off, why_no_quorum(state), left_of(*state.cut_off, limit, now)};
  if (state.freezing && state.freezing->holding_since)
    return {JobPhase::waiting, too_few_workers(state), left_of(*state.freezing->holding_since, limit, now)};
  if (state.freezing) return {JobPhase::changing, state.freezing->reason};
  if (!state.current) return {JobPhase::starting, state.said_waiting ? too_few_workers(state) : ""};
  const std::string for_long = fmt::format("no step for {}", seconds_since(last_step(state), now));
  if (is_stalled(state, now))
    return {JobPhase::stalled, fmt::format("{}: all workers wait for each other ({})", for_long, activities(state))};
  if (now - last_step(state) < kNoStep) return {JobPhase::training};
  return {JobPhase::training, fmt::format("{}: {}", for_long, activities(state))};
}

void watch_standing(DecisionContext& context) {
  State& state = context.state;
  if (state.ending || state.cut_off || !state.current) return;
  if (!state.freezing) {
    if (state.said_standing || !is_stalled(state, context.now)) return;
    return say_standing(context,
                        fmt::format("no step for {}: all workers wait for each other ({})",
                                    seconds_since(last_step(state), context.now), activities(state)),
                        "a link between their machines may be broken, though each of them answers");
  }
  Freezing& freezing = *state.freezing;
  if (freezing.holding_since || freezing.said_long || !context.passed(freezing.since, kLongPause)) return;
  freezing.said_long = true;
  say_standing(context,
               fmt::format("training has paused for {}, and waits for {}: {}",
                           seconds_since(freezing.times.cause.value_or(freezing.since), context.now), awaited_of(state),
                           freezing.reason),
               "'dtrain hosts list' shows what each host does");
}

void note_further(DecisionContext& context) {
  State& state = context.state;
  if (std::exchange(state.said_standing, false) && state.last_progress != Time{})
    context.say(fmt::format("training goes on after {}", seconds_since(state.last_progress, context.now)));
  state.last_progress = context.now;
}

}  // namespace dtrain::elastic
