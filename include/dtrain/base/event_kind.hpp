// The kinds of a job's events: "event" of each line of events.jsonl, and of the reports of workers, which the
// coordinator records as they are. The names are part of the format: other versions of dtrain and other programs read
// them. Readers pass over a kind that they do not know.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/base/json.hpp>

namespace dtrain {

enum class EventKind {
  // The list of hosts, and each host.
  hosts,
  hosts_refused,
  host_starting,
  host_up,
  host_down,
  preparing,
  prepared,
  spare,
  drain,
  notice,
  added,
  removed,
  // Processes of workers. A host that does not pass the admission check has `failed`, too.
  worker_starting,
  worker_up,
  worker_ready,
  straggler,
  failed,
  exited,
  left,
  done,
  lost,  // a worker lost the others, or, in its report, the training its last weights
  // Generations.
  prepare,
  commit,
  entered,
  generation,
  abandoned,
  freeze,
  hold,
  // Coordinators.
  takeover,
  cut_off,
  reached,
  claimed,
  // The end of the job.
  stop,
  end_at_once,
  finish,
  goodput,
  // Reports of a training (train/report_json.hpp). Steps are not recorded: they are too many.
  step,
  epoch,
  evaluation,
  checkpoint,
  shards,
  warning,
  // Reports of a program that `dtrain launch` runs.
  started,
  rank_failed
};

inline constexpr EnumName<EventKind> kEventKindNames[] = {
    {EventKind::hosts, "hosts"},
    {EventKind::hosts_refused, "hosts_refused"},
    {EventKind::host_starting, "host_starting"},
    {EventKind::host_up, "host_up"},
    {EventKind::host_down, "host_down"},
    {EventKind::preparing, "preparing"},
    {EventKind::prepared, "prepared"},
    {EventKind::spare, "spare"},
    {EventKind::drain, "drain"},
    {EventKind::notice, "notice"},
    {EventKind::added, "added"},
    {EventKind::removed, "removed"},
    {EventKind::worker_starting, "worker_starting"},
    {EventKind::worker_up, "worker_up"},
    {EventKind::worker_ready, "worker_ready"},
    {EventKind::straggler, "straggler"},
    {EventKind::failed, "failed"},
    {EventKind::exited, "exited"},
    {EventKind::left, "left"},
    {EventKind::done, "done"},
    {EventKind::lost, "lost"},
    {EventKind::prepare, "prepare"},
    {EventKind::commit, "commit"},
    {EventKind::entered, "entered"},
    {EventKind::generation, "generation"},
    {EventKind::abandoned, "abandoned"},
    {EventKind::freeze, "freeze"},
    {EventKind::hold, "hold"},
    {EventKind::takeover, "takeover"},
    {EventKind::cut_off, "cut_off"},
    {EventKind::reached, "reached"},
    {EventKind::claimed, "claimed"},
    {EventKind::stop, "stop"},
    {EventKind::end_at_once, "end_at_once"},
    {EventKind::finish, "finish"},
    {EventKind::goodput, "goodput"},
    {EventKind::step, "step"},
    {EventKind::epoch, "epoch"},
    {EventKind::evaluation, "evaluation"},
    {EventKind::checkpoint, "checkpoint"},
    {EventKind::shards, "shards"},
    {EventKind::warning, "warning"},
    {EventKind::started, "started"},
    {EventKind::rank_failed, "rank_failed"},
};

// Each kind stands in the table, at its place in the enum; the last one is named here.
static_assert(std::size(kEventKindNames) == static_cast<std::size_t>(EventKind::rank_failed) + 1);
static_assert([] {
  std::size_t place = 0;
  for (const EnumName<EventKind>& each : kEventKindNames) {
    if (static_cast<std::size_t>(each.value) != place++) return false;
  }
  return true;
}());

// {"event": the kind's name, and the details}.
inline Json make_event(EventKind kind, Json::Object details = {}) {
  Json event = Json::object({{"event", enum_name(kEventKindNames, kind)}});
  for (auto& [key, value] : details) event[key] = std::move(value);
  return event;
}

// The kind of an event; nullopt for that of another version, and for what is no event.
inline std::optional<EventKind> event_kind(const Json& event) {
  return event.is_object() ? enum_value(kEventKindNames, event.find_text("event")) : std::nullopt;
}

// Whether a job begins with this event, for the first time or again: what was under way before it is over. The list
// with which a job begins names all of its hosts.
inline bool begins_job(const Json& event) {
  const Json* const list = event_kind(event) == EventKind::hosts ? event.find("list") : nullptr;
  return list && list->is_number() && list->as_number() == 1;
}

// Whether the event says that a host did not pass the admission check: it names no worker.
inline bool is_host_refusal(const Json& event) {
  if (event_kind(event) != EventKind::failed) return false;
  const Json* const worker = event.find("worker");
  return !worker || !worker->is_number();
}

}  // namespace dtrain
