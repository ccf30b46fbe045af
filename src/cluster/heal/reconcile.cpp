#include <dtrain/cluster/reconcile.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include <dtrain/base/text.hpp>

#include "handover.hpp"
#include "left.hpp"
#include "pools.hpp"

namespace dtrain::cluster {
namespace {

using Kind = HealAction::Kind;
using State = WorkerSeen::State;

std::string workers_text(int count, bool base) { return count_text(count, base ? "worker" : "added worker"); }

class Decision {
 public:
  Decision(const Observed& observed, const Wish& wish, int least, HealMemory memory, UnixTime now)
      : observed_(observed), wish_(wish), least_(least), now_(now) {
    made_.memory = std::move(memory);
  }

  HealDecision run() {
    // Spot workers run on in a stopped cluster, so a spent budget ends them there too.
    if (observed_.spent_budget.empty() && is_left_alone()) return std::move(made_);
    forget();
    note_left(observed_, made_.memory);
    count_out();
    note_losses(observed_, made_.memory, now_);
    if (!observed_.spent_budget.empty()) {
      close();
      return std::move(made_);
    }
    if (!head_is_there()) return std::move(made_);
    heal_sick();
    if (const std::string left = left_text(made_.memory); !left.empty()) wait(left);
    refill(true);
    refill(false);
    let_join();
    end_surplus();
    return std::move(made_);
  }

 private:
  void wait(std::string_view why) { made_.waits.emplace_back(why); }
  bool is_left_alone() {
    if (!observed_.complete) {
      wait("the cluster is being made or removed, or lacks its launch template");
    } else if (observed_.stopped) {
      wait("the cluster is stopped, and only its owner starts it again");
    }
    return !observed_.complete || observed_.stopped;
  }
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
    std::erase_if(made_.memory.tagged, [&](const auto& one) { return !find(one.first); });
    for (auto* times : {&made_.memory.handovers, &made_.memory.asked}) {
      std::erase_if(*times, [&](const auto& one) {
        const WorkerSeen* worker = find(one.first);
        return !worker || worker->state == State::ended;
      });
    }
  }

  // What this one did for the worker is in its tags, or on the way there, even if AWS does not show it yet.
  bool is_tagged(const WorkerSeen& worker) const {
    const auto at = made_.memory.tagged.find(worker.id);
    return at != made_.memory.tagged.end() && now_ - at->second < kAskAgain;
  }

  void count_out() {
    for (const WorkerSeen& worker : observed_.workers) {
      if (!worker.leaves || worker.left) continue;
      if (is_tagged(worker)) continue;
      made_.memory.tagged[worker.id] = now_;
      int& count = worker.base ? wish_.base : wish_.elastic;
      // After an `up` with fewer workers, a base worker may be beyond the wish: it was wanted no longer.
      const int fewer = worker.base ? std::clamp(count - counted(true), 0, worker.weight) : worker.weight;
      HealAction& action =
          act(Kind::count_out,
              fmt::format("{} was removed by the user, so {} fewer {} wanted", worker.name,
                          fewer == 1 ? "one worker" : workers_text(fewer, true), fewer == 1 ? "is" : "are"));
      action.id = worker.id;
      action.base = worker.base;
      action.count = fewer;
      count = std::max(count - fewer, 0);
    }
  }

  // Nothing is started on a budget that is spent.
  void close() {
    std::vector<std::string> ids;
    int stay = 0;
    bool job_runs = false;
    for (const WorkerSeen& one : observed_.workers) {
      if (one.state != State::starting && one.state != State::running) continue;
      if (one.adopted) {
        ++stay;
        job_runs |= one.part > Part::no_job;
      } else {
        ids.push_back(one.id);
        made_.memory.lost.insert(one.id);  // its pool is not to blame
      }
    }
    if (!ids.empty() || job_runs) act(Kind::close, observed_.spent_budget + " are spent").ids = std::move(ids);
    std::string text = observed_.spent_budget + " are spent, so no machine is started";
    if (observed_.head == Observed::Head::alive) text += "; the head still runs and costs money";
    if (stay > 0) text += fmt::format("; machines of the stack still run and cost money: {}", stay);
    wait(text);
  }

  bool head_is_there() {
    if (observed_.head == Observed::Head::alive) return true;
    const std::string gone =
        observed_.head_end.empty() ? "the head is gone" : fmt::format("the head is gone ({})", observed_.head_end);
    if (observed_.head == Observed::Head::stopped) {
      wait("the head is stopped, and only its owner starts it again");
    } else if (const std::string why = why_no_head(observed_, made_.memory); !why.empty()) {
      wait(why);
    } else if (const auto left = made_.memory.head_rest.until - now_; left > std::chrono::seconds(0)) {
      wait(fmt::format("{}; the next attempt to start one is in {}", gone, format_duration(left)));
    } else {
      act(Kind::restore_head, gone + ": a new one takes its address, so that workers find it");
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
    int count = 0;
    for (const WorkerSeen& one : observed_.workers) {
      if (one.base == base && counts(one)) count += one.weight;
    }
    return count;
  }
  int all_counted() const { return counted(true) + counted(false); }

  // What AWS announces is true for however many.
  void heal_sick() {
    std::vector<const WorkerSeen*> due, announced;
    int alive = 0;
    for (const WorkerSeen& worker : observed_.workers) {
      if (worker.state == State::ended || worker.leaves) continue;
      ++alive;
      if (worker.adopted) {
        leave_to_owner(worker);
        continue;
      }
      const WorkerSeen* fresh = worker.replaced_by.empty() ? nullptr : find(worker.replaced_by);
      const bool has_replacement = (fresh && fresh->state != State::ended) || (!fresh && is_tagged(worker));
      if (fresh && fresh->state == State::running) {
        hand_over(worker, *fresh);
      } else if (worker.announced && worker.state == State::running) {
        if (!has_replacement) announced.push_back(&worker);
      } else if (!worker.sick.empty() && worker.state == State::running) {
        const UnixTime since = made_.memory.sick.try_emplace(worker.id, now_).first->second;
        if (now_ - since >= kSickTime && !has_replacement) due.push_back(&worker);
      }
    }
    for (const WorkerSeen* worker : announced) {
      note_loss(*worker, made_.memory, now_);
      replace(*worker, fmt::format("{} is to go: {}", worker->name, worker->sick));
    }
    for (const WorkerSeen* worker : due) {
      if (const int sick = sick_with(*worker); sick > 1 && 2 * sick > alive) {
        return try_one(due, fmt::format("{} of {} workers are sick at once", sick, alive));
      }
    }
    for (const WorkerSeen* worker : due) {
      if (is_too_young(*worker)) continue;
      replace(*worker,
              fmt::format("{} has been sick for {}: {}", worker->name, format_duration(kSickTime), worker->sick));
    }
  }

  void leave_to_owner(const WorkerSeen& worker) {
    if (worker.sick.empty() || worker.state != State::running) return;
    const UnixTime since = made_.memory.sick.try_emplace(worker.id, now_).first->second;
    if (!worker.announced && now_ - since < kSickTime) return;
    wait(fmt::format("{} is sick ({}), and no watch ends a machine of a stack: `dtrain cluster remove` does",
                     worker.name, worker.sick));
  }

  // How many became sick at about the same time, and as replacements of others. Most of the workers do not do so by
  // themselves: that is the network, the head or AWS.
  int sick_with(const WorkerSeen& worker) const {
    const UnixTime since = made_.memory.sick.at(worker.id);
    return static_cast<int>(std::ranges::count_if(made_.memory.sick, [&](const auto& one) {
      const bool is_near = one.second >= since - kSickTime && one.second <= since + kSickTime;
      return is_near || is_new(*find(one.first), kLeastAge);
    }));
  }
  // Started by a reconciler, less than that time ago.
  bool is_new(const WorkerSeen& worker, std::chrono::seconds time) const {
    return worker.healed && worker.began != UnixTime(0) && now_ - worker.began < time;
  }

  // The cause may be in the machines after all: a reconciler that was started again takes for one moment what came one
  // after the other. So one worker is replaced as a trial. If its successor stays well, fewer are sick, and the others
  // follow; if not, a network or a head that fails costs one machine in kLeastAge.
  void try_one(const std::vector<const WorkerSeen*>& due, const std::string& many) {
    const auto since = [&](const WorkerSeen* one) { return made_.memory.sick.at(one->id); };
    const WorkerSeen* first = *std::ranges::min_element(due, {}, since);
    if (const auto left = kMostSickTime - (now_ - since(first)); left > std::chrono::seconds(0)) {
      return wait(
          fmt::format("{}, so the cause is hardly in the machines; one is replaced as a trial in {} if that "
                      "stays so",
                      many, format_duration(left)));
    }
    const auto is_trial = [&](const WorkerSeen& one) {
      return one.state != State::ended && is_new(one, one.sick.empty() ? kTrialTime : kLeastAge);
    };
    if (const auto trial = std::ranges::find_if(observed_.workers, is_trial); trial != observed_.workers.end()) {
      return wait(fmt::format("{}, and the next one is replaced once {} is seen to stay well", many, trial->name));
    }
    replace(*first, fmt::format("{} for long, and {} is replaced as a trial: {}", many, first->name, first->sick));
  }

  bool is_too_young(const WorkerSeen& worker) {
    if (!is_new(worker, kLeastAge)) return false;
    wait(fmt::format(
        "{} is sick ({}) soon after it took the place of another worker, so the cause may be the job; it is "
        "replaced in {} if that stays so",
        worker.name, worker.sick, format_duration(kLeastAge - (now_ - worker.began))));
    return true;
  }

  void hand_over(const WorkerSeen& bad, const WorkerSeen& fresh) {
    const UnixTime since = made_.memory.handovers.try_emplace(bad.id, now_).first->second;
    const HandoverStep step = next_step(bad, fresh, now_ - since);
    made_.hurries = true;
    if (step.kind == HandoverStep::Kind::wait) return wait(step.why);
    if (step.kind == HandoverStep::Kind::join) return ask_job(Kind::join, fresh, step.why);
    if (step.kind == HandoverStep::Kind::drain) return ask_job(Kind::drain, bad, step.why);
    HealAction& action = act(Kind::finish_replace, step.why);
    action.id = bad.id;
    action.other = fresh.id;
  }

  void ask_job(Kind kind, const WorkerSeen& worker, const std::string& why) {
    UnixTime& asked = made_.memory.asked[worker.id];
    if (asked != UnixTime(0) && now_ - asked < kAskAgain) return wait(why);
    asked = now_;
    HealAction& action = act(kind, why);
    action.id = worker.id;
    action.host = worker.host;
  }

  // Added workers join by their tags; one that replaces a lost worker of `up` joins here. What the job had before and
  // has no more was removed from it on purpose.
  void let_join() {
    for (const WorkerSeen& one : observed_.workers) {
      const bool comes = one.base && one.healed && !one.listed && !one.was_listed && one.part == Part::outside;
      if (!comes || !one.ready || one.state != State::running || !counts(one) || is_a_replacement(one)) continue;
      ask_job(Kind::join, one, fmt::format("{} is there to replace a lost worker", one.name));
    }
  }

  void replace(const WorkerSeen& worker, const std::string& why) {
    std::vector<Pool> pools = open_pools();
    if (pools.empty()) return wait(fmt::format("{}, but {}", why, until_a_pool_opens()));
    HealAction& action = act(Kind::replace, why);
    made_.memory.tagged[worker.id] = now_;
    action.id = worker.id;
    action.base = worker.base;
    action.count = worker.weight;
    action.pools = std::move(pools);
    made_.hurries = true;
  }

  void refill(bool base) {
    const int wanted = base ? wish_.base : wish_.elastic;
    const int lacking = wanted - counted(base) - count_left(made_.memory, base);
    if (lacking <= 0) return;
    const bool urgent = all_counted() < least_;
    const std::string why = fmt::format("{} of {} are there{}", counted(base), workers_text(wanted, base),
                                        urgent ? fmt::format(", fewer than the minimum of {}", least_) : "");
    std::vector<Pool> pools = open_pools();
    if (pools.empty()) return wait(fmt::format("{}, but {}", why, until_a_pool_opens()));
    const std::string end = latest_end(pools, made_.memory);
    HealAction& action = act(Kind::start_workers, end.empty() ? why : fmt::format("{}; {}", why, end));
    action.base = base;
    action.count = lacking;
    action.pools = std::move(pools);
  }

  UnixTime opens_at(const Pool& pool) const {
    const auto rest = made_.memory.rests.find(pool.place());
    if (rest == made_.memory.rests.end()) return UnixTime(0);
    const bool urgent = all_counted() < least_ && !rest->second.boots_fail();
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
    const std::string end = latest_end(observed_.pools, made_.memory);
    return fmt::format("{}; the next one is asked in {}",
                       end.empty() ? "no pool had a machine"
                                   : fmt::format("machines end soon after their start, or no pool had one ({})", end),
                       format_duration(first - now_));
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
        if (over < one->weight) continue;
        over -= one->weight;
        victims.push_back(one);
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
      act(Kind::end, fmt::format("{} is beyond the {} workers that are wanted", one->name, wish_.workers())).id =
          one->id;
      made_.memory.lost.insert(one->id);
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

}  // namespace

HealDecision reconcile(const Observed& observed, const Wish& wish, int least, HealMemory memory, UnixTime now) {
  return Decision(observed, wish, least, std::move(memory), now).run();
}

}  // namespace dtrain::cluster
