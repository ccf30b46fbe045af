#include "host_requests.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "decide/decision_context.hpp"

namespace dtrain::elastic {
namespace {

bool may_train(const State& state, const Host& host, Time now) {
  const HostPhase phase = phase_of(state, host, now);
  return phase == HostPhase::member || phase == HostPhase::ready || phase == HostPhase::preparing ||
         phase == HostPhase::starting || phase == HostPhase::spare;
}

// Workers that the job has, or may have soon, on hosts that pass the test.
template <typename Test>
std::size_t workers_on(const State& state, Time now, const Test& counts) {
  std::size_t workers = 0;
  for (const std::string& name : state.order) {
    const Host& host = state.hosts.at(name);
    if (!host.drained && counts(name) && may_train(state, host, now)) {
      workers += static_cast<std::size_t>(host.line.slots);
    }
  }
  return std::min(workers, static_cast<std::size_t>(std::max(state.policy.max_workers, 0)));
}

// `verb`: what the command does to the hosts.
void require_workers_to_stay(const State& state, const std::vector<std::string>& leaving, const char* verb, Time now) {
  const auto needed = static_cast<std::size_t>(std::max(1, state.policy.min_workers));
  const auto stays = [&](const std::string& name) { return std::ranges::find(leaving, name) == leaving.end(); };
  const std::size_t before = workers_on(state, now, [](const std::string&) { return true; });
  const std::size_t after = workers_on(state, now, stays);
  if (after >= needed || after == before) return;
  throw UsageError(fmt::format("this leaves {} of at least {}: the job would wait for others, and stop after {} s",
                               count_of(after, "worker"), needed,
                               std::chrono::duration_cast<std::chrono::seconds>(state.policy.hold_timeout).count()),
                   fmt::format("add hosts first; the same command with setting 'yes' {} {} all the same", verb,
                               fmt::join(leaving, ", ")));
}

}  // namespace

std::vector<std::string> hosts_to_drain(const State& state, const Json& request, Time now) {
  std::vector<std::string> names;
  if (const Json* list = request.find("hosts")) {
    for (const Json& name : list->as_array()) names.push_back(name.as_string());
  } else {
    names.push_back(request.at("host").as_string());
  }
  for (const std::string& name : names) {
    const auto found = state.hosts.find(name);
    if (found == state.hosts.end())
      throw UsageError(fmt::format("the job has no host {}", name), "dtrain hosts list names them");
    if (!found->second.wanted) {
      throw UsageError(fmt::format("{} was removed and is leaving", name),
                       fmt::format("`dtrain hosts add {}` takes it back", name));
    }
  }
  const Json* any_number = request.find("any_number");
  if (any_number && !any_number->as_bool() && state.policy.elastic)
    require_workers_to_stay(state, names, "drains", now);
  return names;
}

void check_removed_hosts(const State& state, const Json& request, Time now) {
  const Json *list = request.find("remove"), *keep_enough = request.find("keep_enough");
  if (!list || !keep_enough || !keep_enough->as_bool()) return;
  std::vector<std::string> names;
  for (const Json& name : list->as_array()) names.push_back(name.as_string());
  require_workers_to_stay(state, names, "removes", now);
}

HostsBack take_hosts_back(const State& state, const Json& request, int slots) {
  HostsBack back{.names = {}, .rest = request};
  const Json* lines = request.find("add");
  if (!lines) return back;
  Json others = Json::array();
  for (const Json& line : lines->as_array()) {
    const std::string& text = line.as_string();
    const HostList list = parse_host_file(text, slots);
    const auto found = list.hosts.size() == 1 ? state.hosts.find(list.hosts.front().name) : state.hosts.end();
    if (found == state.hosts.end() || !found->second.wanted || !found->second.drained) {
      others.push_back(line);
      continue;
    }
    const HostLine& listed = found->second.line;
    if (text.find("slots=") != text.npos && list.hosts.front().slots != listed.slots) {
      throw UsageError(fmt::format("{} is in the host list with slots={}, and drained", listed.name, listed.slots),
                       "without slots=, the same command takes it back; its line in host_worker says how many it has");
    }
    back.names.push_back(listed.name);
  }
  back.rest["add"] = std::move(others);
  return back;
}

}  // namespace dtrain::elastic
