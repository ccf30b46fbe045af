#include "earlier_work.hpp"

#include <dtrain/base/clock.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/event_kind.hpp>

namespace dtrain::elastic {
namespace {

// The first step of a generation: the first of them ends the start of the job, each other one a pause.
void note_first_step(const Json& event, std::optional<EarlierWork>& work) {
  const auto time = unix_time_of(event.find_text("time"));
  if (!time) return;
  if (!work) {
    work.emplace(EarlierWork{.first_step = WallTime(*time)});
  } else {
    work->paused += std::chrono::duration<double>(event.at("pause_seconds").as_number());
  }
}

}  // namespace

std::optional<EarlierWork> earlier_work_in(const std::vector<Json>& events) {
  std::optional<EarlierWork> work;
  for (const Json& event : events) {
    try {
      const std::optional<EventKind> kind = event_kind(event);
      if (!kind) continue;
      if (begins_job(event) || *kind == EventKind::finish) work.reset();
      if (*kind == EventKind::generation) note_first_step(event, work);
      if (*kind == EventKind::started && work) work->is_of_program = true;
    } catch (const DataError&) {  // a damaged line
    }
  }
  return work;
}

}  // namespace dtrain::elastic
