#include "explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::board {
namespace {

std::string text_of_value(const Json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.as_string();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> parts;
  for (const Json& one : value.as_array()) {
    if (std::string part = text_of_value(one); !part.empty()) parts.push_back(std::move(part));
  }
  return join(parts, ", ");
}

// Parts of sentences. Each is empty where the event does not say it, so that a sentence has no hole.

std::string led_by(std::string_view lead, const std::string& text) {
  return text.empty() ? text : std::string(lead) + text;
}

// A number that names or counts something; a negative one stands for "none".
std::string number_text(const Json& event, std::string_view name) {
  return member_number(event, name, -1) < 0 ? std::string() : member_text(event, name);
}

// "2 workers"
std::string counted(const Json& event, std::string_view name, std::string_view noun) {
  const Json* const count = event.find(name);
  return count && count->is_integer() && count->as_integer() >= 0 ? count_text(count->as_integer(), noun) : "";
}

std::string seconds_text(const Json& event, std::string_view name) {
  const double seconds = member_number(event, name, -1);
  return seconds < 0 ? std::string() : format_duration(std::chrono::duration<double>(seconds));
}

std::string because(const Json& event) { return led_by(": ", member_text(event, "reason")); }

// "worker 2 on w1 (slot 1)"
std::string worker_text(const Json& event) {
  const std::string worker = number_text(event, "worker"), slot = number_text(event, "slot");
  return fmt::format("{}{}{}", worker.empty() ? "a worker" : "worker " + worker,
                     led_by(" on ", member_text(event, "host")), slot.empty() ? "" : fmt::format(" (slot {})", slot));
}

std::string generation_text(const Json& event) {
  const std::string number = number_text(event, "generation");
  return number.empty() ? "a generation" : "generation " + number;
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string host_sentence(const Json& event, std::string_view what) {
  const std::string host = member_text(event, "host");
  return fmt::format("{} {}{}", host.empty() ? "A host" : host, what, because(event));
}

std::string worker_sentence(const Json& event, std::string_view what) {
  return fmt::format("{} {}{}", capitalised(worker_text(event)), what, because(event));
}

std::string generation_sentence(const Json& event, std::string_view what) {
  return fmt::format("{} {}{}", capitalised(generation_text(event)), what, because(event));
}

// An edit may change lines of hosts only, and a coordinator that took over knows the hosts already.
std::string hosts_sentence(const Json& event) {
  const std::string added = member_text(event, "added"), removed = member_text(event, "removed");
  std::vector<std::string> parts;
  if (!added.empty()) parts.push_back(added + " should join");
  if (!removed.empty()) parts.push_back(removed + " should leave");
  if (parts.empty()) parts.emplace_back("the hosts stay the same");
  const std::string what = begins_job(event) ? "The coordinator has its first list of hosts"
                                             : "The list of hosts changed" + led_by(" by ", member_text(event, "by"));
  return fmt::format("{}: {}", what, join(parts, "; "));
}

std::string failed_sentence(const Json& event) {
  return is_host_refusal(event) ? host_sentence(event, "did not pass the admission check")
                                : worker_sentence(event, "failed");
}

// A worker that lost its peers, or the report of a training that could not write its last weights.
std::string lost_sentence(const Json& event) {
  if (!event.find("message")) return worker_sentence(event, "lost the others in " + generation_text(event));
  return fmt::format("{} could not write its last checkpoint{}",
                     number_text(event, "worker").empty() ? "The training" : capitalised(worker_text(event)),
                     led_by(": ", member_text(event, "message")));
}

// A notice that does not ask the host to leave is a forecast of the cloud.
std::string notice_sentence(const Json& event) {
  const Json* const leave = event.find("leave");
  const bool stays = leave && leave->is_bool() && !leave->as_bool();
  return host_sentence(event, stays ? "may end soon; the job keeps it until then" : "was given notice");
}

std::string straggler_sentence(const Json& event) {
  const std::string own = seconds_text(event, "compute_seconds");
  return fmt::format("{} holds the others up{}{}", capitalised(worker_text(event)),
                     own.empty() ? "" : fmt::format(": it computes {} a step", own),
                     led_by(", the others ", seconds_text(event, "median_seconds")));
}

std::string prepare_sentence(const Json& event) {
  const std::string leaving = member_text(event, "leaving");
  return fmt::format("{}{} is being prepared{}{}", capitalised(generation_text(event)),
                     led_by(" of ", counted(event, "workers", "worker")),
                     leaving.empty() ? "" : fmt::format("; workers on {} leave", leaving), because(event));
}

std::string pause_sentence(const Json& event) {
  std::string parts;
  if (const Json* seconds = event.find("seconds"); seconds && seconds->is_object()) {
    for (const auto& [name, value] : seconds->as_object()) {
      if (!value.is_number() || value.as_number() < 5e-4) continue;
      std::string words = name;
      std::ranges::replace(words, '_', ' ');
      parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", words,
                           format_duration(std::chrono::duration<double>(value.as_number())));
    }
  }
  return generation_sentence(event, fmt::format("trains{}{}{}", led_by(" with ", counted(event, "workers", "worker")),
                                                led_by(" after a pause of ", seconds_text(event, "pause_seconds")),
                                                parts.empty() ? "" : " (" + parts + ")"));
}

std::string takeover_sentence(const Json& event) {
  std::vector<std::string> parts = {led_by("term ", number_text(event, "term")), counted(event, "workers", "worker"),
                                    led_by("agents of ", member_text(event, "hosts"))};
  std::erase(parts, "");
  return "Another coordinator took over" + led_by(": ", join(parts, ", "));
}

std::string finish_sentence(const Json& event) {
  constexpr int kFirstOfSignals = 129;  // 128 and the number of the signal that ended the job
  const std::string text = number_text(event, "exit_code");
  if (text.empty()) return "The job is over" + because(event);
  const double code = member_number(event, "exit_code");
  const char* const how = code == static_cast<int>(ExitCode::ok)          ? "is complete"
                          : code == static_cast<int>(ExitCode::resumable) ? "stopped and can be resumed"
                          : code >= kFirstOfSignals                       ? "was ended without a checkpoint"
                                                                          : "failed";
  return fmt::format("The job {} (exit code {}){}", how, text, because(event));
}

std::string goodput_sentence(const Json& event) {
  const double percent = member_number(event, "percent");  // null: not measured
  const double samples = member_number(event, "samples_seen"), sent = member_number(event, "sent_bytes");
  std::vector<std::string> parts;
  if (percent > 0) parts.push_back(fmt::format("{:.1f} % of the time went into steps that count", percent));
  if (percent <= 0)
    parts.emplace_back(samples > 0 ? "not measured, the coordinator heard of steps at most once"
                                   : "not measured, no worker counted samples");
  if (samples > 0) parts.push_back(member_text(event, "samples_seen") + " samples seen");
  if (sent > 0) parts.push_back(format_bytes(static_cast<std::uint64_t>(sent)) + " sent between workers");
  return "Goodput" + led_by(": ", join(parts, ", "));
}

// A negative precision: the pictures show nothing to find.
std::string precision_text(const Json& figures) {
  const double ap = member_number(figures, "ap", -1), ap50 = member_number(figures, "ap50", -1);
  if (ap < 0 || ap50 < 0) return "no average precision, because there was nothing to find";
  return fmt::format("average precision {:.4f}, {:.4f} at overlap 0.50", ap, ap50);
}

// Events have null for a number that is not finite. A detector's evaluation has an average precision instead of a
// loss, its training no accuracy.
std::string metrics_text(const Json& event) {
  if (const Json* const boxes = event.find("boxes")) {
    const Json* const masks = event.find("masks");
    return precision_text(*boxes) + (masks ? "; of masks " + precision_text(*masks) : "");
  }
  std::vector<std::string> parts;
  if (const Json* const loss = event.find("loss")) {
    parts.push_back(loss->is_number() ? fmt::format("loss {:.4f}", loss->as_number()) : "a loss that is not finite");
  }
  const double accuracy = member_number(event, "accuracy", -1);
  if (accuracy >= 0) parts.push_back(fmt::format("accuracy {:.4f}", accuracy));
  return join(parts, ", ");
}

// An epoch or a step; empty where the event names none.
std::string counted_text(const Json& event, std::string_view name) {
  return number_text(event, name).empty() ? std::string() : fmt::format("{:.0f}", counted_from_one(event, name));
}

std::string metrics_sentence(const Json& event, std::string_view what) {
  return fmt::format("{}{}{}", what, led_by(" of epoch ", counted_text(event, "epoch")),
                     led_by(": ", metrics_text(event)));
}

std::string checkpoint_sentence(const Json& event) {
  const std::string worker = number_text(event, "worker"), file = member_text(event, "file");
  return fmt::format("{} {}", worker.empty() ? "Saved" : fmt::format("Worker {} saved", worker),
                     file.empty() ? "a checkpoint" : file);
}

std::string started_sentence(const Json& event) {
  return fmt::format("The program starts{}{}{}{}", member_number(event, "restart") > 0 ? " again" : "",
                     led_by(" as ", counted(event, "ranks", "rank")),
                     led_by(" on ", counted(event, "machines", "machine")),
                     led_by(" in generation ", number_text(event, "generation")));
}

std::string rank_failed_sentence(const Json& event) {
  const std::string rank = number_text(event, "rank"), worker = number_text(event, "worker");
  const std::string restart = number_text(event, "failures");
  const std::string most = led_by(" of at most ", number_text(event, "max_restarts"));
  return fmt::format("{}{}{} failed{}; all ranks start again{}", rank.empty() ? "A rank" : "Rank " + rank,
                     led_by(" on ", member_text(event, "host")),
                     worker.empty() ? "" : fmt::format(" (worker {})", worker), because(event),
                     restart.empty() ? "" : fmt::format(" (restart {}{})", restart, most));
}

using Sentence = std::string (*)(const Json&);

struct Telling {
  EventKind kind;
  Weight weight;
  Sentence sentence;
};

// In the order of the enumeration, so that each kind has its sentence.
constexpr Telling kTellings[] = {
    {EventKind::hosts, Weight::change, hosts_sentence},
    {EventKind::hosts_refused, Weight::trouble,
     [](const Json& e) {
       const std::string removed = member_text(e, "removed");
       return fmt::format("The removal of {} is ignored{}", removed.empty() ? "hosts" : removed, because(e));
     }},
    {EventKind::host_starting, Weight::detail, [](const Json& e) { return host_sentence(e, "gets an agent"); }},
    {EventKind::host_up, Weight::detail,
     [](const Json& e) {
       const std::string host = member_text(e, "host");
       return fmt::format("The agent of {} answers{}{}", host.empty() ? "a host" : host,
                          led_by(" from ", member_text(e, "address")), led_by(" after ", seconds_text(e, "seconds")));
     }},
    {EventKind::host_down, Weight::detail, [](const Json& e) { return host_sentence(e, "has no agent"); }},
    {EventKind::preparing, Weight::detail,
     [](const Json& e) { return host_sentence(e, "is being prepared and checked"); }},
    {EventKind::prepared, Weight::detail, [](const Json& e) { return host_sentence(e, "passed the admission check"); }},
    {EventKind::spare, Weight::detail,
     [](const Json& e) { return host_sentence(e, "is a spare: there are enough workers"); }},
    {EventKind::drain, Weight::change, [](const Json& e) { return host_sentence(e, "leaves at the next step"); }},
    {EventKind::notice, Weight::change, notice_sentence},
    {EventKind::added, Weight::change,
     [](const Json& e) { return host_sentence(e, "is a member: it has finished a step"); }},
    {EventKind::removed, Weight::change, [](const Json& e) { return host_sentence(e, "is no member any more"); }},
    {EventKind::worker_starting, Weight::detail, [](const Json& e) { return "A process starts: " + worker_text(e); }},
    {EventKind::worker_up, Weight::detail,
     [](const Json& e) { return worker_sentence(e, "runs" + led_by(" as process ", number_text(e, "pid"))); }},
    {EventKind::worker_ready, Weight::detail, [](const Json& e) { return worker_sentence(e, "is ready to join"); }},
    {EventKind::straggler, Weight::trouble, straggler_sentence},
    {EventKind::failed, Weight::trouble, failed_sentence},
    {EventKind::exited, Weight::detail,
     [](const Json& e) { return fmt::format("The process of {} is gone{}", worker_text(e), because(e)); }},
    {EventKind::left, Weight::detail, [](const Json& e) { return worker_sentence(e, "left"); }},
    {EventKind::done, Weight::detail, [](const Json& e) { return worker_sentence(e, "is done"); }},
    {EventKind::lost, Weight::trouble, lost_sentence},
    {EventKind::prepare, Weight::detail, prepare_sentence},
    {EventKind::commit, Weight::change,
     [](const Json& e) {
       return generation_sentence(e, "is committed" + led_by(", with workers on ", member_text(e, "members")));
     }},
    {EventKind::entered, Weight::detail,
     [](const Json& e) {
       return fmt::format("All members entered {}{}", generation_text(e),
                          led_by("; the state was synchronised in ", seconds_text(e, "sync_seconds")));
     }},
    {EventKind::generation, Weight::change, pause_sentence},
    {EventKind::abandoned, Weight::change, [](const Json& e) { return generation_sentence(e, "is given up"); }},
    {EventKind::freeze, Weight::trouble,
     [](const Json& e) {
       return fmt::format("Training pauses; no update of {} counts from here{}", generation_text(e), because(e));
     }},
    {EventKind::hold, Weight::trouble, [](const Json& e) { return "Training waits for workers" + because(e); }},
    {EventKind::takeover, Weight::change, takeover_sentence},
    {EventKind::cut_off, Weight::trouble,
     [](const Json&) { return std::string("The coordinator does not reach enough agents: it decides nothing"); }},
    {EventKind::reached, Weight::change,
     [](const Json& e) {
       return "The coordinator reaches enough agents again" + led_by(", after ", seconds_text(e, "seconds"));
     }},
    {EventKind::claimed, Weight::change,
     [](const Json& e) {
       return fmt::format("The coordinator holds the tie-breaker of {}: it continues with half of the agents",
                          generation_text(e));
     }},
    {EventKind::stop, Weight::change, [](const Json& e) { return "The job begins to stop" + because(e); }},
    {EventKind::end_at_once, Weight::trouble, [](const Json& e) { return "The job ends at once" + because(e); }},
    {EventKind::finish, Weight::change, finish_sentence},
    {EventKind::goodput, Weight::detail, goodput_sentence},
    {EventKind::step, Weight::detail,
     [](const Json& e) { return metrics_sentence(e, "Step" + led_by(" ", counted_text(e, "step"))); }},
    {EventKind::epoch, Weight::detail, [](const Json& e) { return metrics_sentence(e, "Training"); }},
    {EventKind::evaluation, Weight::detail, [](const Json& e) { return metrics_sentence(e, "Validation"); }},
    {EventKind::checkpoint, Weight::detail, checkpoint_sentence},
    {EventKind::shards, Weight::detail,
     [](const Json& e) {
       return "Shards follow the speed of the workers" + led_by(": ranks compute ", member_text(e, "shards"));
     }},
    {EventKind::warning, Weight::trouble,
     [](const Json& e) {
       return fmt::format("Warning{}{}", led_by(" of worker ", number_text(e, "worker")),
                          led_by(": ", member_text(e, "message")));
     }},
    {EventKind::started, Weight::change, started_sentence},
    {EventKind::rank_failed, Weight::trouble, rank_failed_sentence},
};
static_assert(std::ranges::equal(kTellings, kEventKindNames, {}, &Telling::kind, &EnumName<EventKind>::value),
              "each kind of event has its sentence, at its place");

std::string by_members(const Json& event) {
  if (!event.is_object()) return event.dump();
  std::vector<std::string> parts;
  for (const auto& [name, value] : event.as_object()) {
    if (name == "seq" || name == "time" || name == "event") continue;
    if (std::string text = led_by(name + "=", text_of_value(value)); !text.empty()) parts.push_back(std::move(text));
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

double counted_from_one(const Json& event, std::string_view name) { return member_number(event, name) + 1; }

std::string explain(const Json& event) {
  const std::optional<EventKind> kind = event_kind(event);
  return kind ? kTellings[static_cast<std::size_t>(*kind)].sentence(event) : by_members(event);
}

Weight weight_of(const Json& event) {
  const std::optional<EventKind> kind = event_kind(event);
  return kind ? kTellings[static_cast<std::size_t>(*kind)].weight : Weight::detail;
}

}  // namespace dtrain::board
