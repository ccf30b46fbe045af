// Decides what a cluster needs to be as it is wanted: a pure function of what was observed, the wish, what the
// reconciler remembers, and the time. Its caller carries the actions out, and decides again some seconds later.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {

inline constexpr std::chrono::seconds kFirstPoolPause{30};
inline constexpr std::chrono::seconds kLongestPoolPause{1'800};
inline constexpr std::chrono::seconds kUrgentPoolPause{60};  // the longest while there are too few workers
inline constexpr std::chrono::seconds kAfterSpotLoss{120};   // a pool that lost a spot machine rests so long
inline constexpr std::chrono::seconds kSickTime{120};        // a worker is replaced after being sick for so long
inline constexpr std::chrono::seconds kSurplusTime{120};     // workers beyond the wish are ended after so long

// A worker as AWS, and perhaps the head, show it.
struct WorkerSeen {
  std::string id{}, name{};
  bool base = true;
  enum class State { starting, running, stopped, ended } state = State::running;
  Pool pool{};
  std::string sick{};         // why; empty: it is well, or its health is unknown
  std::string replaced_by{};  // id of the worker that was started in its place
  bool leaves = false;        // the user had it removed
  bool left = false;          // and the wish counts it no more
  bool healed = false;        // a reconciler started it
  std::string launched{};     // orders workers by age; empty: just now
};

struct Observed {
  enum class Head { alive, stopped, gone } head = Head::alive;
  bool complete = true;        // false: the cluster is being made or removed
  bool stopped = false;        // the user has it stopped: nothing is done for it
  std::string spent_budget{};  // budget_text() of a budget that is spent; empty: there is money left, or no budget
  std::vector<WorkerSeen> workers{};
  std::vector<Pool> pools{};  // where workers can be started, in order of preference
};

// Empty after a start of the reconciler, which costs time but breaks nothing.
struct HealMemory {
  struct Rest {
    int failures = 0;
    UnixTime until{0}, since{0};
  };
  std::map<std::string, Rest> rests{};     // by Pool::text()
  std::map<std::string, UnixTime> sick{};  // by id: since when
  std::set<std::string> lost{};            // ids of spot machines whose loss is known
  UnixTime surplus_since{0};               // 0: there is no surplus
};

struct HealAction {
  enum class Kind {
    restore_head,
    count_out,       // lower the wish for `id`, which left on purpose
    start_workers,   // `count`, base or elastic, from one of `pools`
    replace,         // start a worker in the place of `id`
    finish_replace,  // end `id`, whose replacement `other` runs
    end,             // end `id`, a worker beyond the wish
    close,           // stop the job with a checkpoint, then end all workers
  };
  Kind kind = Kind::start_workers;
  bool base = true;
  int count = 0;
  std::vector<Pool> pools{};
  std::string id{}, other{};
  std::vector<std::string> ids{};  // of close: the workers
  std::string reason{};            // a sentence for the user
};
std::string_view name_of(HealAction::Kind kind);

struct HealDecision {
  std::vector<HealAction> actions{};
  std::vector<std::string> waits{};  // why something that is wanted is not done now
  HealMemory memory{};
};
// `least`: below this number of workers, pools rest for less long.
HealDecision reconcile(const Observed& observed, const Wish& wish, int least, HealMemory memory, UnixTime now);

// What is remembered after a request for workers: a pool that gave none rests, each time for twice as long.
HealMemory after_attempts(HealMemory memory, const std::vector<Attempt>& attempts, UnixTime now);

// The pools in the order in which lost workers are refilled: in each zone each market, in each market each type, so
// that another type is tried first, then another market, then another zone; the zone of the head comes first.
std::vector<Pool> refill_pools(const Spec& spec, const Account& account, const std::string& zone);

// What the fleet shows. `sick`: why a worker is sick, by instance id.
Observed observed_in(const Fleet& fleet, const std::map<std::string, std::string>& sick, std::vector<Pool> pools);

}  // namespace dtrain::cluster
