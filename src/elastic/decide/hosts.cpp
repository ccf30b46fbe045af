// Which hosts and processes there should be: the host list, agents, and one process a slot.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <dtrain/net/addresses.hpp>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

constexpr WorkerId kReservedAtOnce = 1'000;

struct Edit {
  std::vector<std::string> added, removed;
  bool lines_changed = false;
};

// A damaged line may mean any host; after a command of the user it means a host only if it still contains the name.
bool may_be_meant(const HostsWanted& wanted, const std::string& name) {
  return std::ranges::any_of(
      wanted.doubtful, [&](const std::string& line) { return !wanted.by_person || line.find(name) != line.npos; });
}

Edit compare(const State& state, const HostsWanted& wanted) {
  Edit edit;
  for (const HostLine& line : wanted.hosts) {
    const auto known = state.hosts.find(line.name);
    if (known == state.hosts.end() || !known->second.wanted) {
      edit.added.push_back(line.name);
    } else if (!(known->second.line == line)) {
      edit.lines_changed = true;
    }
  }
  for (const std::string& name : state.order) {
    const auto stays = [&](const HostLine& line) { return line.name == name; };
    if (std::ranges::none_of(wanted.hosts, stays) && !may_be_meant(wanted, name)) edit.removed.push_back(name);
  }
  return edit;
}

// Hosts that are wanted though the list lacks them, because their line is damaged, come last.
std::vector<std::string> order_of(const State& state, const HostsWanted& wanted) {
  std::vector<std::string> order;
  for (const HostLine& line : wanted.hosts) order.push_back(line.name);
  for (const std::string& name : state.order) {
    if (state.hosts.at(name).wanted && std::ranges::find(order, name) == order.end()) order.push_back(name);
  }
  return order;
}

Json names_json(const std::vector<std::string>& names) {
  Json json = Json::array();
  for (const std::string& name : names) json.push_back(name);
  return json;
}

bool may_edit(DecisionContext& context, const HostsWanted& wanted, const Edit& edit) {
  const State& state = context.state;
  if (state.edits == 0) return true;
  if (!state.policy.elastic) {
    context.say("the host list changed, but this job keeps the hosts that it began with",
                "start a job with setting 'elastic' to let workers come and go", Say::Kind::warning);
    return false;
  }
  if (wanted.by_person || state.policy.allow_mass_remove || edit.removed.size() * 2 <= state.order.size()) return true;
  context.emit(EventKind::hosts_refused,
               {{"removed", names_json(edit.removed)}, {"reason", "more than half of the hosts"}});
  context.say(fmt::format("an edit that removes {} of {} hosts is ignored: it looks like an accident",
                          edit.removed.size(), state.order.size()),
              "'dtrain hosts remove NAME' removes any number; setting 'allow-mass-remove' lets edits by hand do it too",
              Say::Kind::warning);
  return false;
}

void forget_failures(Host& host) {
  host.failures = 0;
  host.quarantined_until = {};
  host.last_failure.clear();
  host.next_command.clear();
  host.forget_key.clear();
}

bool is_idle(const Host& host) {
  return std::ranges::all_of(host.slots, [](WorkerId worker) { return worker == 0; });
}

void say_launching(DecisionContext& context, const Host& host) {
  const bool from_the_start = context.state.edits <= 1 && host.failures == 0;
  context.say(
      fmt::format("{}{}", from_the_start ? "Launching worker node at ip: " : "Launching new worker: ", host.line.name));
}

void start_agent(DecisionContext& context, Host& host) {
  host.agent = AgentState::starting;
  host.agent_ended = false;
  host.agent_since = context.now;
  host.admission = AdmissionState::unchecked;
  say_launching(context, host);
  context.emit(EventKind::host_starting, {{"host", host.line.name}});
  context.add(StartHost{host.line});
}

// Worker ids are reserved in the journal before use, a thousand at a time.
WorkerId next_worker_id(DecisionContext& context) {
  State& state = context.state;
  if (state.next_worker == state.reserved_workers) {
    state.reserved_workers += kReservedAtOnce;
    context.add(JournalEntry{state.next_generation - 1, false, state.reserved_workers, {}});
  }
  return state.next_worker++;
}

void start_worker(DecisionContext& context, Host& host, std::size_t slot) {
  const WorkerId id = next_worker_id(context);
  Worker& worker = context.state.workers[id];
  worker.id = host.slots[slot] = id;
  worker.host = host.line.name;
  worker.slot = static_cast<int>(slot);
  context.enter_phase(worker, WorkerPhase::starting);
  if (host.failures > 0) say_launching(context, host);
  context.emit(EventKind::worker_starting, worker);
  context.add(StartWorker{worker.host, worker.slot, id});
}

void fill_slots(DecisionContext& context, Host& host) {
  if (host.agent == AgentState::none) start_agent(context, host);
  if (host.agent != AgentState::up || !pass_admission_check(context, host)) return;
  for (std::size_t slot = 0; slot < host.allotted; ++slot) {
    if (host.slots[slot] == 0) start_worker(context, host, slot);
  }
}

// Surplus members, and workers that are about to become members, leave with a change of generation; other processes end
// at once.
void dismiss_surplus(DecisionContext& context, Host& host) {
  const auto& change = context.state.change;
  for (std::size_t slot = host.allotted; slot < host.slots.size(); ++slot) {
    Worker* worker = context.find(host.slots[slot]);
    if (worker == nullptr || !is_usable(*worker) || is_member(*worker)) continue;
    if (change && change->committed && contains(change->members, worker->id)) continue;
    dismiss(context, *worker, "not needed any more");
  }
}

void announce_spare(DecisionContext& context, Host& host) {
  const bool spare = host.wanted && !host.drained && host.allotted == 0;
  if (spare && !host.said_spare) {
    context.emit(EventKind::spare, {{"host", host.line.name}, {"max_workers", context.state.policy.max_workers}});
    context.say(fmt::format("{} is a spare: the job has its {} already", host.line.name,
                            count_of(static_cast<std::size_t>(context.state.policy.max_workers), "worker")),
                kToUseSpare);
  }
  host.said_spare = spare;
}

void settle_host(DecisionContext& context, Host& host) {
  dismiss_surplus(context, host);
  announce_spare(context, host);
  if (host.allotted > 0 && host.quarantined_until <= context.now) fill_slots(context, host);
  if (host.allotted == 0 && is_idle(host) && (host.agent == AgentState::up || host.agent == AgentState::starting)) {
    host.agent = AgentState::ending;
    host.agent_since = context.now;
    context.add(EndHost{host.line.name});
  }
  note_gone(context, host);
}

bool is_forgettable(const Host& host) {
  return !host.wanted && !host.logged && host.agent == AgentState::none && is_idle(host);
}

// On purpose only where all hosts are this machine, whose agents come from its loopback.
void say_shared_machine(DecisionContext& context, Host& host) {
  if (host.said_shared || host.address.empty() || net::is_loopback(host.address)) return;
  const auto shares = [&](const auto& entry) {
    const Host& other = entry.second;
    return &other != &host && other.agent == AgentState::up && other.address == host.address;
  };
  const auto other = std::ranges::find_if(context.state.hosts, shares);
  if (other == context.state.hosts.end()) return;
  host.said_shared = true;
  context.say(fmt::format("{} and {} have one address, {}: their workers share one machine's processors, memory and "
                          "GPUs",
                          other->first, host.line.name, host.address),
              "list the machine once, with slots=N for N workers", Say::Kind::warning);
}

}  // namespace

void accept_hosts(DecisionContext& context, const HostsWanted& wanted) {
  State& state = context.state;
  if (state.ending) return;
  const Edit edit = compare(state, wanted);
  const bool changed = !edit.added.empty() || !edit.removed.empty() || edit.lines_changed || state.edits == 0;
  if (!changed) state.order = order_of(state, wanted);
  if (!changed || !may_edit(context, wanted, edit)) return;
  ++state.edits;
  for (const std::string& name : edit.removed) {
    Host& host = state.hosts.at(name);
    host.wanted = host.drained = host.noticed = false;
    host.edit = state.edits;
    host.edited = context.now;
  }
  for (const HostLine& line : wanted.hosts) {
    Host& host = state.hosts[line.name];
    host.line = line;
    host.slots.resize(std::max(host.slots.size(), static_cast<std::size_t>(line.slots)));
    if (std::exchange(host.wanted, true)) continue;
    host.drained = host.noticed = false;  // a notice may have come while it was leaving
    host.newcomer = state.edits > 1;
    host.edit = state.edits;
    host.edited = context.now;
    forget_failures(host);
  }
  state.order = order_of(state, wanted);
  context.emit(EventKind::hosts, {{"added", names_json(edit.added)},
                                  {"removed", names_json(edit.removed)},
                                  {"by", wanted.by_person ? "command" : "file"},
                                  {"list", state.edits}});
}

void drain_host(DecisionContext& context, const std::string& name, const std::string& reason) {
  const auto found = context.state.hosts.find(name);
  if (context.state.ending || found == context.state.hosts.end() || !found->second.wanted || found->second.drained)
    return;
  if (!context.state.policy.elastic) {
    context.say(
        fmt::format("{} is to leave ({}), but this job keeps the hosts that it began with: it stops", name, reason),
        "start a job with setting 'elastic' to let workers come and go", Say::Kind::warning);
    return begin_stop(context, reason, ExitCode::resumable);
  }
  Host& host = found->second;
  host.drained = true;
  host.drain_reason = reason;
  host.edited = context.now;
  context.emit(EventKind::drain, {{"host", name}, {"reason", reason}});
}

// Recorded as an edit of the list, because listing a host again ends its drain (pending_requests.hpp).
void end_drains(DecisionContext& context, const std::vector<std::string>& names) {
  State& state = context.state;
  std::vector<std::string> back;
  for (const std::string& name : names) {
    const auto found = state.hosts.find(name);
    if (state.ending || found == state.hosts.end() || !found->second.wanted || !found->second.drained) continue;
    Host& host = found->second;
    host.drained = host.noticed = false;
    host.drain_reason.clear();
    host.newcomer = true;
    host.edited = context.now;
    forget_failures(host);
    back.push_back(name);
  }
  if (back.empty()) return;
  ++state.edits;
  for (const std::string& name : back) state.hosts.at(name).edit = state.edits;
  context.emit(EventKind::hosts,
               {{"added", names_json(back)}, {"removed", Json::array()}, {"by", "command"}, {"list", state.edits}});
}

void take_notice(DecisionContext& context, const HostNotice& notice) {
  const auto found = context.state.hosts.find(notice.host);
  if (found == context.state.hosts.end()) return;
  if (notice.leave && found->second.noticed) return;  // an agent repeats it when it has reconnected
  context.emit(EventKind::notice, {{"host", notice.host}, {"leave", notice.leave}, {"reason", notice.reason}});
  if (!notice.leave) return;
  found->second.noticed = true;
  drain_host(context, notice.host, notice.reason);
}

bool any_has_notice(const State& state, std::span<const WorkerId> workers) {
  return std::ranges::any_of(workers, [&](WorkerId id) { return state.hosts.at(state.workers.at(id).host).noticed; });
}

void host_up(DecisionContext& context, const HostUp& up) {
  const auto found = context.state.hosts.find(up.host);
  if (found == context.state.hosts.end()) return context.add(EndHost{up.host});  // forgotten while it was away
  Host& host = found->second;
  if (host.agent == AgentState::up || host.agent == AgentState::ending) return;
  if (host.agent == AgentState::none) host.agent_since = context.now;  // it was lost and has reconnected
  host.agent = AgentState::up;
  host.agent_ended = false;
  host.knows = 0;
  host.address = up.address;
  context.emit(EventKind::host_up,
               {{"host", up.host},
                {"address", up.address},
                {"seconds", seconds_between(std::exchange(host.agent_since, context.now), context.now)}});
  say_shared_machine(context, host);
  announce_change_again(context);
}

void host_down(DecisionContext& context, const HostDown& down) {
  const auto found = context.state.hosts.find(down.host);
  if (found != context.state.hosts.end()) {
    lose_host(context, found->second, down.reason, down.is_fault_of_this_machine);
    if (!down.forget_key.empty()) found->second.forget_key = down.forget_key;
  }
}

void settle_hosts(DecisionContext& context) {
  State& state = context.state;
  if (state.ending || state.edits == 0) return;
  allot_slots(state, context.now);
  for (auto& [name, host] : state.hosts) settle_host(context, host);
  std::erase_if(state.hosts, [](const auto& entry) { return is_forgettable(entry.second); });
}

void note_gone(DecisionContext& context, Host& host) {
  if (!host.logged || (host.wanted && !host.drained)) return;
  const auto trains = [&](WorkerId id) {
    const Worker* worker = context.find(id);
    return worker != nullptr && is_member(*worker);
  };
  if (std::ranges::any_of(host.slots, trains)) return;
  host.logged = false;
  context.emit(EventKind::removed,
               {{"host", host.line.name}, {"reason", host.drained ? host.drain_reason : "not in the host list"}});
  context.add(LogMembership{false, host.line.name});
}

}  // namespace dtrain::elastic
