#include "explain.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::board {
namespace {

std::string text_of_value(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.as_string();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> parts;
  for (const Json& one : value.as_array()) parts.push_back(text_of_value(one));
  return join(parts, ", ");
}

std::string seconds_text(const Json& event, std::string_view name) {
  return format_duration(std::chrono::duration<double>(member_number(event, name)));
}

// "worker 2 on w1 (slot 1)"
std::string worker_text(const Json& event) {
  std::string text = fmt::format("worker {} on {}", member_text(event, "worker"), member_text(event, "host"));
  if (const std::string slot = member_text(event, "slot"); !slot.empty()) text += fmt::format(" (slot {})", slot);
  return text;
}

std::string because(const Json& event) {
  const std::string reason = member_text(event, "reason");
  return reason.empty() ? std::string() : ": " + reason;
}

std::string hosts_sentence(const Json& event) {
  const std::string added = member_text(event, "added"), removed = member_text(event, "removed");
  std::vector<std::string> parts;
  if (!added.empty()) parts.push_back(added + " should join");
  if (!removed.empty()) parts.push_back(removed + " should leave");
  return fmt::format("The list of hosts changed by {}: {}", member_text(event, "by"), join(parts, ", "));
}

std::string pause_sentence(const Json& event) {
  std::string parts;
  if (const Json* seconds = event.find("seconds"); seconds && seconds->is_object()) {
    for (const auto& [name, value] : seconds->as_object()) {
      if (!value.is_number() || value.as_number() < 5e-4) continue;
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name,
                           format_duration(std::chrono::duration<double>(value.as_number())));
    }
  }
  return fmt::format("Generation {} trains with {} workers after a pause of {}{}{}", member_text(event, "generation"),
                     member_text(event, "workers"), seconds_text(event, "pause_seconds"),
                     parts.empty() ? "" : " (" + parts + ")", because(event));
}

// A detector's evaluation has an average precision in the place of a loss, its training no accuracy.
std::string epoch_sentence(const Json& event, const char* what) {
  const std::string epoch = fmt::format("{} of epoch {}", what, member_text(event, "epoch"));
  if (const Json* const boxes = event.find("boxes")) {
    const auto figures = [](const Json& of) {
      return fmt::format("average precision {:.4f}, {:.4f} at overlap 0.50", member_number(of, "ap"),
                         member_number(of, "ap50"));
    };
    const Json* const masks = event.find("masks");
    return fmt::format("{}: {}{}", epoch, figures(*boxes), masks ? "; of masks " + figures(*masks) : "");
  }
  std::string loss = fmt::format("{}: loss {:.4f}", epoch, member_number(event, "loss"));
  const Json* const accuracy = event.find("accuracy");
  if (accuracy && accuracy->is_null()) return loss;
  return fmt::format("{}, accuracy {:.4f}", loss, member_number(event, "accuracy"));
}

std::string finish_sentence(const Json& event) {
  const double code = member_number(event, "exit_code");
  const char* const how = code == 0 ? "is complete" : code == 75 ? "stopped and can be resumed" : "failed";
  return fmt::format("The job {} (exit code {}){}", how, member_text(event, "exit_code"), because(event));
}

std::string straggler_sentence(const Json& event) {
  return fmt::format("{} holds the others up: it computes {} a step, the median is {}", worker_text(event),
                     seconds_text(event, "compute_seconds"), seconds_text(event, "median_seconds"));
}

using Sentence = std::string (*)(const Json&);

std::string host_sentence(const Json& event, const char* what) {
  return fmt::format("{} {}{}", member_text(event, "host"), what, because(event));
}

const std::map<EventKind, Sentence>& sentences() {
  static const std::map<EventKind, Sentence> all = {
      {EventKind::hosts, hosts_sentence},
      {EventKind::hosts_refused,
       [](const Json& e) {
         return fmt::format("The removal of {} is ignored{}", member_text(e, "removed"), because(e));
       }},
      {EventKind::host_starting, [](const Json& e) { return host_sentence(e, "gets an agent"); }},
      {EventKind::host_up,
       [](const Json& e) {
         return fmt::format("The agent of {} answers from {} after {}", member_text(e, "host"),
                            member_text(e, "address"), seconds_text(e, "seconds"));
       }},
      {EventKind::host_down, [](const Json& e) { return host_sentence(e, "has no agent any more"); }},
      {EventKind::preparing, [](const Json& e) { return host_sentence(e, "is being prepared and checked"); }},
      {EventKind::prepared, [](const Json& e) { return host_sentence(e, "passed the admission check"); }},
      {EventKind::spare, [](const Json& e) { return host_sentence(e, "is a spare: there are workers enough"); }},
      {EventKind::drain, [](const Json& e) { return host_sentence(e, "leaves at the next step"); }},
      {EventKind::notice, [](const Json& e) { return host_sentence(e, "was given notice"); }},
      {EventKind::added, [](const Json& e) { return host_sentence(e, "is a member: it has finished a step"); }},
      {EventKind::removed, [](const Json& e) { return host_sentence(e, "is no member any more"); }},
      {EventKind::worker_starting, [](const Json& e) { return fmt::format("A process starts: {}", worker_text(e)); }},
      {EventKind::worker_up,
       [](const Json& e) { return fmt::format("{} runs as process {}", worker_text(e), member_text(e, "pid")); }},
      {EventKind::worker_ready,
       [](const Json& e) { return fmt::format("{} has built its model and can join", worker_text(e)); }},
      {EventKind::prepare,
       [](const Json& e) {
         return fmt::format("Generation {} of {} workers is prepared{}", member_text(e, "generation"),
                            member_text(e, "workers"), because(e));
       }},
      {EventKind::commit,
       [](const Json& e) {
         return fmt::format("Generation {} is decided; members: {}{}", member_text(e, "generation"),
                            member_text(e, "members"), because(e));
       }},
      {EventKind::entered,
       [](const Json& e) {
         return fmt::format("All members entered generation {}; the state was synchronised in {}",
                            member_text(e, "generation"), seconds_text(e, "sync_seconds"));
       }},
      {EventKind::generation, pause_sentence},
      {EventKind::abandoned,
       [](const Json& e) {
         return fmt::format("Generation {} is given up{}", member_text(e, "generation"), because(e));
       }},
      {EventKind::freeze,
       [](const Json& e) {
         return fmt::format("Training pauses; no update of generation {} counts from here{}",
                            member_text(e, "generation"), because(e));
       }},
      {EventKind::hold, [](const Json& e) { return fmt::format("Training waits{}", because(e)); }},
      {EventKind::failed, [](const Json& e) { return fmt::format("{} failed{}", worker_text(e), because(e)); }},
      {EventKind::exited, [](const Json& e) { return fmt::format("{} exited{}", worker_text(e), because(e)); }},
      {EventKind::lost,
       [](const Json& e) {
         return e.find("worker") ? fmt::format("{} lost the others{}", worker_text(e), because(e))
                                 : fmt::format("The last weights are lost: {}", member_text(e, "message"));
       }},
      {EventKind::left, [](const Json& e) { return fmt::format("{} left{}", worker_text(e), because(e)); }},
      {EventKind::done, [](const Json& e) { return fmt::format("{} is done", worker_text(e)); }},
      {EventKind::straggler, straggler_sentence},
      {EventKind::takeover,
       [](const Json& e) {
         return fmt::format("Another coordinator took over: term {}, {} workers on {}", member_text(e, "term"),
                            member_text(e, "workers"), member_text(e, "hosts"));
       }},
      {EventKind::cut_off,
       [](const Json&) { return std::string("The coordinator does not reach enough agents: it decides nothing"); }},
      {EventKind::reached,
       [](const Json& e) {
         return fmt::format("The coordinator reaches enough agents again, after {}", seconds_text(e, "seconds"));
       }},
      {EventKind::epoch, [](const Json& e) { return epoch_sentence(e, "Training"); }},
      {EventKind::evaluation, [](const Json& e) { return epoch_sentence(e, "Validation"); }},
      {EventKind::checkpoint, [](const Json& e) { return fmt::format("Saved {}", member_text(e, "file")); }},
      {EventKind::shards,
       [](const Json& e) {
         return fmt::format("Shards follow the speed of the workers: ranks compute {}", member_text(e, "shards"));
       }},
      {EventKind::warning, [](const Json& e) { return fmt::format("Warning: {}", member_text(e, "message")); }},
      {EventKind::stop, [](const Json& e) { return fmt::format("The job is asked to stop{}", because(e)); }},
      {EventKind::end_at_once, [](const Json& e) { return fmt::format("The job ends at once{}", because(e)); }},
      {EventKind::finish, finish_sentence},
      {EventKind::goodput,
       [](const Json& e) {
         const double sent = member_number(e, "sent_bytes");
         return fmt::format(
             "{:.1f} % of the time went into steps that count; {} samples seen{}", member_number(e, "percent"),
             member_text(e, "samples_seen"),
             sent > 0 ? ", " + format_bytes(static_cast<std::uint64_t>(sent)) + " sent between workers" : "");
       }},
  };
  return all;
}

std::string by_members(const Json& event) {
  if (!event.is_object()) return event.dump();
  std::vector<std::string> parts;
  for (const auto& [name, value] : event.as_object()) {
    if (name != "seq" && name != "time" && name != "event")
      parts.push_back(fmt::format("{}={}", name, text_of_value(value)));
  }
  return join(parts, " ");
}

}  // namespace

std::string member_text(const Json& event, std::string_view name) {
  const Json* const value = event.is_object() ? event.find(name) : nullptr;
  return value ? text_of_value(*value) : std::string();
}

double member_number(const Json& event, std::string_view name, double otherwise) {
  const Json* const value = event.is_object() ? event.find(name) : nullptr;
  return value && value->is_number() ? value->as_number() : otherwise;
}

std::string explain(const Json& event) {
  const std::optional<EventKind> kind = event_kind(event);
  const auto known = kind ? sentences().find(*kind) : sentences().end();
  std::string text = known == sentences().end() ? by_members(event) : known->second(event);
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z' && text.starts_with("worker ")) text[0] = 'W';
  return text;
}

Weight weight_of(const Json& event) {
  const std::optional<EventKind> kind = event_kind(event);
  if (!kind) return Weight::detail;
  switch (*kind) {
    case EventKind::hosts_refused:
    case EventKind::straggler:
    case EventKind::failed:
    case EventKind::lost:
    case EventKind::freeze:
    case EventKind::cut_off:
    case EventKind::end_at_once:
    case EventKind::warning:
      return Weight::trouble;
    case EventKind::hosts:
    case EventKind::drain:
    case EventKind::notice:
    case EventKind::added:
    case EventKind::removed:
    case EventKind::commit:
    case EventKind::generation:
    case EventKind::abandoned:
    case EventKind::takeover:
    case EventKind::reached:
    case EventKind::stop:
    case EventKind::finish:
      return Weight::change;
    case EventKind::host_starting:
    case EventKind::host_up:
    case EventKind::host_down:
    case EventKind::preparing:
    case EventKind::prepared:
    case EventKind::spare:
    case EventKind::worker_starting:
    case EventKind::worker_up:
    case EventKind::worker_ready:
    case EventKind::exited:
    case EventKind::left:
    case EventKind::done:
    case EventKind::prepare:
    case EventKind::entered:
    case EventKind::hold:
    case EventKind::claimed:
    case EventKind::goodput:
    case EventKind::step:
    case EventKind::epoch:
    case EventKind::evaluation:
    case EventKind::checkpoint:
    case EventKind::shards:
    case EventKind::started:
    case EventKind::rank_failed:
      return Weight::detail;
  }
  return Weight::detail;
}

}  // namespace dtrain::board
