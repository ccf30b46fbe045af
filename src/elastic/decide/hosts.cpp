// Which hosts and processes there should be: the host list, agents, and one process a slot.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "steps.hpp"

namespace dtrain::elastic {
namespace {

constexpr WorkerId kReservedAtOnce = 1'000;

struct Edit {
  std::vector<std::string> added, removed;
  bool lines_changed = false;
};

// A damaged line may be any host; after a person's command it is one only if it still says so.
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

Json names_json(const std::vector<std::string>& names) {
  Json json = Json::array();
  for (const std::string& name : names) json.push_back(name);
  return json;
}

bool may_edit(Turn& turn, const HostsWanted& wanted, const Edit& edit) {
  const State& state = turn.state;
  if (state.edits == 0) return true;
  if (!state.policy.elastic) {
    turn.say("the host list changed, but this job keeps the hosts that it began with",
             "start a job with --elastic to let workers come and go", Say::Kind::warning);
    return false;
  }
  if (wanted.by_person || state.policy.allow_mass_remove || edit.removed.size() * 2 <= state.order.size()) return true;
  turn.emit("hosts_refused", {{"removed", names_json(edit.removed)}, {"reason", "more than half of the hosts"}});
  turn.say(fmt::format("an edit that removes {} of {} hosts is ignored: it looks like an accident", edit.removed.size(),
                       state.order.size()),
           "'dtrain hosts remove NAME' removes any number; --allow-mass-remove lets edits by hand do it too",
           Say::Kind::warning);
  return false;
}

void forget_failures(Host& host) {
  host.failures = 0;
  host.quarantined_until = {};
  host.last_failure.clear();
  host.next_command.clear();
}

bool is_idle(const Host& host) {
  return std::ranges::all_of(host.slots, [](WorkerId worker) { return worker == 0; });
}

void say_launching(Turn& turn, const Host& host) {
  const bool from_the_start = turn.state.edits <= 1 && host.failures == 0;
  turn.say(
      fmt::format("{}{}", from_the_start ? "Launching worker node at ip: " : "Launching new worker: ", host.line.name));
}

void start_agent(Turn& turn, Host& host) {
  host.agent = AgentState::starting;
  host.agent_since = turn.now;
  host.gate = Gate::closed;
  say_launching(turn, host);
  turn.emit("host_starting", {{"host", host.line.name}});
  turn.add(StartHost{host.line});
}

// The journal says which ids may be in use before one of them is, a thousand at a time.
WorkerId next_worker_id(Turn& turn) {
  State& state = turn.state;
  if (state.next_worker == state.reserved_workers) {
    state.reserved_workers += kReservedAtOnce;
    turn.add(JournalEntry{state.next_generation - 1, false, state.reserved_workers, {}});
  }
  return state.next_worker++;
}

void start_worker(Turn& turn, Host& host, std::size_t slot) {
  const WorkerId id = next_worker_id(turn);
  Worker& worker = turn.state.workers[id];
  worker.id = host.slots[slot] = id;
  worker.host = host.line.name;
  worker.slot = static_cast<int>(slot);
  turn.enter_phase(worker, WorkerPhase::starting);
  if (host.failures > 0) say_launching(turn, host);
  turn.emit("worker_starting", worker);
  turn.add(StartWorker{worker.host, worker.slot, id});
}

void fill_slots(Turn& turn, Host& host) {
  if (host.agent == AgentState::none) start_agent(turn, host);
  if (host.agent != AgentState::up || !pass_gate(turn, host)) return;
  for (std::size_t slot = 0; slot < host.allotted; ++slot) {
    if (host.slots[slot] == 0) start_worker(turn, host, slot);
  }
}

// Members that are too many leave with a change of generation, also those who are about to become members; other
// processes just go.
void dismiss_surplus(Turn& turn, Host& host) {
  const auto& change = turn.state.change;
  for (std::size_t slot = host.allotted; slot < host.slots.size(); ++slot) {
    Worker* worker = turn.find(host.slots[slot]);
    if (worker == nullptr || !is_usable(*worker) || is_member(*worker)) continue;
    if (change && change->committed && contains(change->members, worker->id)) continue;
    dismiss(turn, *worker, "not needed any more");
  }
}

void announce_spare(Turn& turn, Host& host) {
  const bool spare = host.wanted && !host.drained && host.allotted == 0;
  if (spare && !host.said_spare) {
    turn.emit("spare", {{"host", host.line.name}, {"max_workers", turn.state.policy.max_workers}});
    turn.say(fmt::format("{} is a spare: the job has its {} already", host.line.name,
                         count_of(static_cast<std::size_t>(turn.state.policy.max_workers), "worker")),
             "a larger --max-workers uses it");
  }
  host.said_spare = spare;
}

void settle_host(Turn& turn, Host& host) {
  dismiss_surplus(turn, host);
  announce_spare(turn, host);
  if (host.allotted > 0 && host.quarantined_until <= turn.now) fill_slots(turn, host);
  if (host.allotted == 0 && is_idle(host) && (host.agent == AgentState::up || host.agent == AgentState::starting)) {
    host.agent = AgentState::ending;
    host.agent_since = turn.now;
    turn.add(EndHost{host.line.name});
  }
  note_gone(turn, host);
}

bool is_forgettable(const Host& host) {
  return !host.wanted && !host.logged && host.agent == AgentState::none && is_idle(host);
}

}  // namespace

void accept_hosts(Turn& turn, const HostsWanted& wanted) {
  State& state = turn.state;
  if (state.ending) return;
  const Edit edit = compare(state, wanted);
  const bool changed = !edit.added.empty() || !edit.removed.empty() || edit.lines_changed || state.edits == 0;
  if (!changed || !may_edit(turn, wanted, edit)) return;
  ++state.edits;
  std::vector<std::string> order;
  for (const std::string& name : edit.removed) {
    Host& host = state.hosts.at(name);
    host.wanted = host.drained = host.noticed = false;
    host.edit = state.edits;
    host.edited = turn.now;
  }
  for (const HostLine& line : wanted.hosts) {
    Host& host = state.hosts[line.name];
    host.line = line;
    host.slots.resize(std::max(host.slots.size(), static_cast<std::size_t>(line.slots)));
    order.push_back(line.name);
    if (std::exchange(host.wanted, true)) continue;
    host.edit = state.edits;
    host.edited = turn.now;
    forget_failures(host);
  }
  for (const std::string& name : state.order) {  // those that only seem to be missing
    if (state.hosts.at(name).wanted && std::ranges::find(order, name) == order.end()) order.push_back(name);
  }
  state.order = std::move(order);
  turn.emit("hosts", {{"added", names_json(edit.added)},
                      {"removed", names_json(edit.removed)},
                      {"by", wanted.by_person ? "command" : "file"}});
}

void drain_host(Turn& turn, const std::string& name, const std::string& reason) {
  const auto found = turn.state.hosts.find(name);
  if (turn.state.ending || found == turn.state.hosts.end() || !found->second.wanted || found->second.drained) return;
  if (!turn.state.policy.elastic) {
    turn.say(
        fmt::format("{} is to leave ({}), but this job keeps the hosts that it began with: it stops", name, reason),
        "start a job with --elastic to let workers come and go", Say::Kind::warning);
    return begin_stop(turn, reason, ExitCode::resumable);
  }
  Host& host = found->second;
  host.drained = true;
  host.drain_reason = reason;
  host.edited = turn.now;
  turn.emit("drain", {{"host", name}, {"reason", reason}});
}

void take_notice(Turn& turn, const HostNotice& notice) {
  const auto found = turn.state.hosts.find(notice.host);
  if (found == turn.state.hosts.end()) return;
  turn.emit("notice", {{"host", notice.host}, {"leave", notice.leave}, {"reason", notice.reason}});
  if (!notice.leave) return;
  found->second.noticed = true;
  drain_host(turn, notice.host, notice.reason);
}

bool somebody_has_notice(const State& state, std::span<const WorkerId> workers) {
  return std::ranges::any_of(workers, [&](WorkerId id) { return state.hosts.at(state.workers.at(id).host).noticed; });
}

void host_up(Turn& turn, const HostUp& up) {
  const auto found = turn.state.hosts.find(up.host);
  if (found == turn.state.hosts.end()) return turn.add(EndHost{up.host});  // it was forgotten while it was away
  Host& host = found->second;
  if (host.agent == AgentState::up || host.agent == AgentState::ending) return;
  if (host.agent == AgentState::none) host.agent_since = turn.now;  // it was lost, and comes back by itself
  host.agent = AgentState::up;
  host.knows = 0;
  host.address = up.address;
  turn.emit("host_up", {{"host", up.host},
                        {"address", up.address},
                        {"seconds", seconds_between(std::exchange(host.agent_since, turn.now), turn.now)}});
}

void host_down(Turn& turn, const HostDown& down) {
  const auto found = turn.state.hosts.find(down.host);
  if (found != turn.state.hosts.end()) lose_host(turn, found->second, down.reason);
}

void settle_hosts(Turn& turn) {
  State& state = turn.state;
  if (state.ending || state.edits == 0) return;
  allot_slots(state, turn.now);
  for (auto& [name, host] : state.hosts) settle_host(turn, host);
  std::erase_if(state.hosts, [](const auto& entry) { return is_forgettable(entry.second); });
}

void note_gone(Turn& turn, Host& host) {
  if (!host.logged || (host.wanted && !host.drained)) return;
  const auto trains = [&](WorkerId id) {
    const Worker* worker = turn.find(id);
    return worker != nullptr && is_member(*worker);
  };
  if (std::ranges::any_of(host.slots, trains)) return;
  host.logged = false;
  turn.emit("removed",
            {{"host", host.line.name}, {"reason", host.drained ? host.drain_reason : "not in the host list"}});
  turn.add(LogMembership{false, host.line.name});
}

}  // namespace dtrain::elastic
