#include <dtrain/cluster/reconcile.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/power.hpp>

namespace dtrain::cluster {
namespace {

using Kind = HealAction::Kind;
using State = WorkerSeen::State;

constexpr std::array<std::string_view, 7> kKindNames{"restore-head",   "count-out", "start-workers", "replace",
                                                     "finish-replace", "end",       "close"};

std::string workers_text(int count, bool base) {
  return fmt::format("{} {}{}", count, base ? "" : "added ", count == 1 ? "worker" : "workers");
}

class Decision {
 public:
  Decision(const Observed& observed, const Wish& wish, int least, HealMemory memory, UnixTime now)
      : observed_(observed), wish_(wish), least_(least), now_(now) {
    made_.memory = std::move(memory);
  }

  HealDecision run() {
    if (!observed_.complete) {
      wait("the cluster is being made or removed, or lacks its launch template");
      return std::move(made_);
    }
    if (observed_.stopped) {
      wait("the cluster is stopped, and only its owner starts it again");
      return std::move(made_);
    }
    forget();
    count_out();
    note_losses();
    if (!observed_.spent_budget.empty()) {
      close();
      return std::move(made_);
    }
    if (!head_is_there()) return std::move(made_);
    heal_sick();
    refill(true);
    refill(false);
    end_surplus();
    return std::move(made_);
  }

 private:
  void wait(std::string_view why) { made_.waits.emplace_back(why); }
  // Makes the text where it stays: GCC 12 warns of the buffer of a short text (-Warray-bounds) when a long one is
  // moved.
  HealAction& act(Kind kind, std::string_view reason) {
    HealAction& action = made_.actions.emplace_back();
    action.kind = kind;
    action.reason = reason;
    return action;
  }
  const WorkerSeen* find(const std::string& id) const {
    const auto found = std::ranges::find(observed_.workers, id, &WorkerSeen::id);
    return found == observed_.workers.end() ? nullptr : &*found;
  }

  // The memory holds only what AWS still shows.
  void forget() {
    std::erase_if(made_.memory.sick, [&](const auto& one) {
      const WorkerSeen* worker = find(one.first);
      return !worker || worker->sick.empty() || worker->state == State::ended;
    });
    std::erase_if(made_.memory.lost, [&](const std::string& id) { return !find(id); });
  }

  void count_out() {
    for (const WorkerSeen& worker : observed_.workers) {
      if (!worker.leaves || worker.left) continue;
      HealAction& action =
          act(Kind::count_out, fmt::format("{} was removed by the user, so one worker fewer is wanted", worker.name));
      action.id = worker.id;
      action.base = worker.base;
      int& count = worker.base ? wish_.base : wish_.elastic;
      count = std::max(count - 1, 0);
    }
  }

  // A pool that has just reclaimed a machine has hardly another one.
  void note_losses() {
    for (const WorkerSeen& worker : observed_.workers) {
      if (worker.state != State::ended || worker.leaves || !worker.replaced_by.empty()) continue;
      if (worker.pool.market != Market::spot || !made_.memory.lost.insert(worker.id).second) continue;
      HealMemory::Rest& rest = made_.memory.rests[worker.pool.text()];
      rest.since = now_;
      rest.until = std::max(rest.until, now_ + kAfterSpotLoss);
    }
  }

  // Nothing is started on a budget that is spent.
  void close() {
    std::vector<std::string> ids;
    for (const WorkerSeen& one : observed_.workers) {
      if (one.state == State::starting || one.state == State::running) ids.push_back(one.id);
    }
    if (!ids.empty()) act(Kind::close, observed_.spent_budget + " are spent").ids = std::move(ids);
    wait(fmt::format("{} are spent, so no machine is started{}", observed_.spent_budget,
                     observed_.head == Observed::Head::alive ? "; the head still runs and costs money" : ""));
  }

  bool head_is_there() {
    if (observed_.head == Observed::Head::alive) return true;
    if (observed_.head == Observed::Head::stopped) {
      wait("the head is stopped, and only its owner starts it again");
    } else {
      act(Kind::restore_head, "the head is gone: a new one takes its address, so that workers find it");
    }
    return false;
  }

  // Workers that count: not those that leave, nor a sick one beside its replacement.
  bool counts(const WorkerSeen& worker) const {
    if (worker.state == State::ended || worker.leaves) return false;
    const WorkerSeen* fresh = worker.replaced_by.empty() ? nullptr : find(worker.replaced_by);
    return !fresh || fresh->state == State::ended;
  }
  int counted(bool base) const {
    return static_cast<int>(std::ranges::count_if(
        observed_.workers, [&](const WorkerSeen& one) { return one.base == base && counts(one); }));
  }
  int all_counted() const { return counted(true) + counted(false); }

  // Most of the workers do not become sick of themselves at the same time: that is the network, the head or AWS.
  void heal_sick() {
    std::vector<const WorkerSeen*> due;
    int alive = 0, sick = 0;
    for (const WorkerSeen& worker : observed_.workers) {
      if (worker.state == State::ended || worker.leaves) continue;
      ++alive;
      const WorkerSeen* fresh = worker.replaced_by.empty() ? nullptr : find(worker.replaced_by);
      if (fresh && fresh->state == State::running) {
        finish(worker, *fresh);
      } else if (!worker.sick.empty() && worker.state == State::running) {
        ++sick;
        const UnixTime since = made_.memory.sick.try_emplace(worker.id, now_).first->second;
        const bool has_replacement = fresh && fresh->state != State::ended;
        if (now_ - since >= kSickTime && !has_replacement) due.push_back(&worker);
      }
    }
    if (sick > 1 && 2 * sick > alive) {
      if (!due.empty())
        wait(fmt::format("{} of {} workers are sick at once, so the cause is not in the machines, and none is replaced",
                         sick, alive));
      return;
    }
    for (const WorkerSeen* worker : due) replace(*worker);
  }

  void finish(const WorkerSeen& bad, const WorkerSeen& fresh) {
    HealAction& action = act(Kind::finish_replace, fmt::format("{} runs in the place of {}", fresh.name, bad.name));
    action.id = bad.id;
    action.other = fresh.id;
  }

  void replace(const WorkerSeen& worker) {
    std::vector<Pool> pools = open_pools();
    if (pools.empty())
      return wait(fmt::format("{} is sick ({}) but {}", worker.name, worker.sick, until_a_pool_opens()));
    HealAction& action = act(Kind::replace, fmt::format("{} has been sick for {}: {}", worker.name,
                                                        format_duration(kSickTime), worker.sick));
    action.id = worker.id;
    action.base = worker.base;
    action.count = 1;
    action.pools = std::move(pools);
  }

  void refill(bool base) {
    const int wanted = base ? wish_.base : wish_.elastic;
    const int lacking = wanted - counted(base);
    if (lacking <= 0) return;
    const bool urgent = all_counted() < least_;
    const std::string why = fmt::format("{} of {} are there{}", wanted - lacking, workers_text(wanted, base),
                                        urgent ? fmt::format(", fewer than the minimum of {}", least_) : "");
    std::vector<Pool> pools = open_pools();
    if (pools.empty()) return wait(fmt::format("{}, but {}", why, until_a_pool_opens()));
    HealAction& action = act(Kind::start_workers, why);
    action.base = base;
    action.count = lacking;
    action.pools = std::move(pools);
  }

  UnixTime opens_at(const Pool& pool) const {
    const auto rest = made_.memory.rests.find(pool.text());
    if (rest == made_.memory.rests.end()) return UnixTime(0);
    const bool urgent = all_counted() < least_;
    return urgent ? std::min(rest->second.until, rest->second.since + kUrgentPoolPause) : rest->second.until;
  }

  std::vector<Pool> open_pools() const {
    std::vector<Pool> open;
    std::ranges::copy_if(observed_.pools, std::back_inserter(open),
                         [&](const Pool& pool) { return opens_at(pool) <= now_; });
    return open;
  }

  std::string until_a_pool_opens() const {
    if (observed_.pools.empty()) return "no zone offers such a machine";
    UnixTime first = opens_at(observed_.pools.front());
    for (const Pool& pool : observed_.pools) first = std::min(first, opens_at(pool));
    return fmt::format("no pool had a machine; the next one is asked in {}", format_duration(first - now_));
  }

  // Only machines that a reconciler started, the youngest first, and only after AWS had time to show all of them.
  void end_surplus() {
    std::vector<const WorkerSeen*> victims;
    for (const bool base : {true, false}) {
      int over = counted(base) - (base ? wish_.base : wish_.elastic);
      std::vector<const WorkerSeen*> ours;
      for (const WorkerSeen& one : observed_.workers) {
        if (one.base == base && one.healed && counts(one) && !is_a_replacement(one)) ours.push_back(&one);
      }
      std::ranges::sort(ours, [](const WorkerSeen* a, const WorkerSeen* b) { return younger(*a, *b); });
      for (const WorkerSeen* one : ours) {
        if (over-- > 0) victims.push_back(one);
      }
    }
    UnixTime& since = made_.memory.surplus_since;
    if (victims.empty()) {
      since = UnixTime(0);
      return;
    }
    if (since == UnixTime(0)) since = now_;
    if (now_ - since < kSurplusTime) return;
    for (const WorkerSeen* one : victims) {
      act(Kind::end, fmt::format("{} is one more than the {} workers that are wanted", one->name, wish_.workers())).id =
          one->id;
    }
  }
  static bool younger(const WorkerSeen& a, const WorkerSeen& b) {
    if (a.launched.empty() != b.launched.empty()) return a.launched.empty();
    return a.launched != b.launched ? a.launched > b.launched : a.id > b.id;
  }
  bool is_a_replacement(const WorkerSeen& one) const {
    return std::ranges::any_of(observed_.workers, [&](const WorkerSeen& other) {
      return other.replaced_by == one.id && other.state != State::ended;
    });
  }

  const Observed& observed_;
  Wish wish_;
  int least_;
  UnixTime now_;
  HealDecision made_;
};

WorkerSeen::State state_of(const Node& node) {
  if (!node.there()) return State::ended;
  if (node.state == "pending") return State::starting;
  return node.state == "running" ? State::running : State::stopped;
}

}  // namespace

std::string_view name_of(HealAction::Kind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

HealDecision reconcile(const Observed& observed, const Wish& wish, int least, HealMemory memory, UnixTime now) {
  return Decision(observed, wish, least, std::move(memory), now).run();
}

HealMemory after_attempts(HealMemory memory, const std::vector<Attempt>& attempts, UnixTime now) {
  for (const Attempt& one : attempts) {
    if (one.got >= one.wanted) {
      memory.rests.erase(one.pool.text());
      continue;
    }
    HealMemory::Rest& rest = memory.rests[one.pool.text()];
    // A pool that gave some has no more now, but it is not one that has none.
    rest.failures = one.got > 0 ? 1 : rest.failures + 1;
    std::chrono::seconds pause = kFirstPoolPause;
    for (int failure = 1; failure < rest.failures && pause < kLongestPoolPause; ++failure) pause *= 2;
    rest.since = now;
    rest.until = now + std::min(pause, kLongestPoolPause);
  }
  return memory;
}

std::vector<Pool> refill_pools(const Spec& spec, const Account& account, const std::string& zone) {
  std::vector<Pool> pools = worker_pools(spec, account, zone);
  std::vector<std::string> zones{zone};
  for (const Pool& pool : pools) {
    if (std::ranges::find(zones, pool.zone) == zones.end()) zones.push_back(pool.zone);
  }
  std::ranges::stable_sort(pools, {}, [&](const Pool& pool) { return std::ranges::find(zones, pool.zone); });
  return pools;
}

Observed observed_in(const Fleet& fleet, const std::map<std::string, std::string>& sick, std::vector<Pool> pools) {
  Observed observed{
      .complete = fleet.group && fleet.launch_template, .stopped = is_stopped(fleet), .pools = std::move(pools)};
  const Node* head = fleet.head();
  observed.head = !head ? Observed::Head::gone : head->alive() ? Observed::Head::alive : Observed::Head::stopped;
  const auto tag_of = [](const Node& node, const char* key) {
    const auto found = node.tags.find(key);
    return found == node.tags.end() ? std::string() : found->second;
  };
  const auto see = [&](const Node& node) {
    // A machine that only carries the cluster's tag was put there by hand: it is not the cluster's to count.
    if (node.role != Role::worker || (node.launch.empty() && !node.base && !node.elastic)) return;
    const auto why = sick.find(node.instance_id);
    observed.workers.push_back({.id = node.instance_id,
                                .name = node.name,
                                .base = node.base,
                                .state = state_of(node),
                                .pool = {node.market, node.type, node.zone, node.subnet_id},
                                .sick = why == sick.end() ? "" : why->second,
                                .replaced_by = tag_of(node, tag::kReplaced),
                                .leaves = leaves_on_purpose(node),
                                .left = !tag_of(node, tag::kLeft).empty(),
                                .healed = !tag_of(node, tag::kHealed).empty(),
                                .launched = node.launch_time});
  };
  for (const Node& node : fleet.nodes) see(node);
  for (const Node& node : fleet.ending) see(node);
  return observed;
}

}  // namespace dtrain::cluster
