#include "handover.hpp"

#include <fmt/format.h>

#include <dtrain/base/text.hpp>

namespace dtrain::cluster {
namespace {

using StepKind = HandoverStep::Kind;

HandoverStep made(StepKind kind, std::string why) { return {kind, std::move(why)}; }

// The job loses nothing when the old worker goes.
bool is_out(const WorkerSeen& bad) {
  return bad.part == Part::no_job || (!bad.listed && (bad.part == Part::outside || bad.part == Part::joining));
}

// What is not done in time.
std::string late(const WorkerSeen& bad, const WorkerSeen& fresh) {
  if (bad.part == Part::unknown) return "the head could not be asked for its job";
  if (!fresh.ready) return fmt::format("{} has not registered with the head", fresh.name);
  if (bad.part == Part::fixed) return fmt::format("the job on {} takes no other workers", bad.name);
  if (!bad.listed) return fmt::format("{} has not left the job", bad.name);
  return fmt::format("{} has not joined the job", fresh.name);
}

}  // namespace

HandoverStep next_step(const WorkerSeen& bad, const WorkerSeen& fresh, std::chrono::seconds since) {
  const std::string there = fmt::format("{} runs instead of {}", fresh.name, bad.name);
  if (bad.part == Part::unasked) return made(StepKind::finish, there);
  if (fresh.ready && is_out(bad)) return made(StepKind::finish, there);
  if (since >= kHandoverTime) {
    return made(StepKind::finish,
                fmt::format("{}, but {} within {}", there, late(bad, fresh), format_duration(kHandoverTime)));
  }
  if (bad.part == Part::unknown) {
    return made(StepKind::wait,
                fmt::format("{}, and the head cannot be asked whether {} still trains", there, bad.name));
  }
  if (!fresh.ready) return made(StepKind::wait, fmt::format("{} boots to take the place of {}", fresh.name, bad.name));
  if (bad.part == Part::fixed) {
    return made(StepKind::wait, fmt::format("{} waits for {}, whose job takes no other workers; {} is ended in {}",
                                            fresh.name, bad.name, bad.name, format_duration(kHandoverTime - since)));
  }
  const bool serves = fresh.part == Part::trains || fresh.part == Part::spare;
  if (!fresh.listed && !serves) {
    return made(StepKind::join, fmt::format("{} is there to take the place of {}", fresh.name, bad.name));
  }
  if (!serves) return made(StepKind::wait, fmt::format("{} joins the job before {} leaves it", fresh.name, bad.name));
  if (bad.listed) {
    return made(StepKind::drain,
                fmt::format("{} {} {}", fresh.name,
                            fresh.part == Part::trains ? "trains instead of" : "is ready to replace", bad.name));
  }
  return made(StepKind::wait, fmt::format("{} leaves the job", bad.name));
}

}  // namespace dtrain::cluster
