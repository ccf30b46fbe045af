// The admission check before a host's first worker. A host that fails is quarantined and checked again later; the job
// does not wait for it.
#include <fmt/format.h>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

bool must_pass(const State& state, const Host& host) {
  return state.policy.admission_check == AdmissionCheckFor::all_hosts ||
         (state.policy.admission_check == AdmissionCheckFor::new_hosts && host.newcomer);
}

const char* text_of(AdmissionCheckResult::Prepare prepare) {
  switch (prepare) {
    case AdmissionCheckResult::Prepare::ran:
      return "ran";
    case AdmissionCheckResult::Prepare::earlier:
      return "earlier";
    case AdmissionCheckResult::Prepare::by_hand:
      return "by hand";
    case AdmissionCheckResult::Prepare::none:
      break;
  }
  return "none";
}

void fail(DecisionContext& context, Host& host, const AdmissionCheckResult& result) {
  const std::string& name = host.line.name;
  const std::string& last = result.last_lines.empty() ? result.failure : result.last_lines.back();
  const bool has_more = !result.last_lines.empty() && result.failure.find(last) == result.failure.npos;
  const std::string reason = has_more ? fmt::format("{}: {}", result.failure, last) : result.failure;
  context.emit(EventKind::failed, {{"host", name},
                                   {"stage", stage_name(result.stage)},
                                   {"reason", reason},
                                   {"last_lines", lines_json(result.last_lines)}});
  context.say(fmt::format("{} may not join: {}", name, reason),
              "the job continues without it and checks it again later", Say::Kind::error);
  fail_host(context, host, reason);
  host.next_command = fmt::format("dtrain tail-logs --host {} --no-follow", name);
}

void pass(DecisionContext& context, Host& host, const AdmissionCheckResult& result) {
  host.admission = AdmissionState::passed;
  context.emit(EventKind::prepared,
               {{"host", host.line.name},
                {"prepare", text_of(result.prepare)},
                {"health", result.health},
                {"seconds", Json::object({{"prepare", result.prepare_seconds},
                                          {"check", result.check_seconds},
                                          {"all", seconds_between(host.admission_since, context.now)}})}});
  if (result.prepare == AdmissionCheckResult::Prepare::by_hand) {
    context.say(fmt::format("{} was prepared by hand: the prepare command does not run there", host.line.name));
  }
  if (!result.note.empty()) context.say(fmt::format("{}: {}", host.line.name, result.note), {}, Say::Kind::warning);
}

}  // namespace

bool pass_admission_check(DecisionContext& context, Host& host) {
  if (host.admission == AdmissionState::passed || !must_pass(context.state, host)) return true;
  if (host.admission == AdmissionState::checking) return false;
  host.admission = AdmissionState::checking;
  host.admission_since = context.now;
  context.emit(EventKind::preparing, {{"host", host.line.name}});
  context.add(RunAdmissionCheck{host.line.name});
  return false;
}

void admission_checked(DecisionContext& context, const AdmissionChecked& checked) {
  const auto found = context.state.hosts.find(checked.host);
  if (found == context.state.hosts.end() || found->second.admission != AdmissionState::checking) return;
  Host& host = found->second;
  host.admission = AdmissionState::unchecked;
  if (host.agent != AgentState::up) return;
  checked.result.failure.empty() ? pass(context, host, checked.result) : fail(context, host, checked.result);
}

void watch_admission_checks(DecisionContext& context) {
  for (auto& [name, host] : context.state.hosts) {
    if (host.admission != AdmissionState::checking || host.agent != AgentState::up) continue;
    if (!context.passed(host.admission_since, context.state.policy.admission_timeout)) continue;
    context.add(EndHost{name});
    lose_host(context, host, "its admission check did not end in time");
  }
}

}  // namespace dtrain::elastic
