// Decides what a cluster needs to be as it is wanted: a pure function of what was observed, the wish, what the
// reconciler remembers, and the time. Its caller carries the actions out, and decides again some seconds later.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/health.hpp>
#include <dtrain/cluster/tag_sync.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {

inline constexpr std::chrono::seconds kFirstPoolPause{30};
inline constexpr std::chrono::seconds kLongestPoolPause{1'800};
inline constexpr std::chrono::seconds kUrgentPoolPause{60};  // the longest while there are too few workers
inline constexpr std::chrono::seconds kAfterSpotLoss{120};   // a pool that lost a spot machine rests so long
inline constexpr std::chrono::seconds kSickTime{120};        // a worker is replaced after being sick for so long
inline constexpr std::chrono::seconds kSurplusTime{120};     // workers beyond the wish are ended after so long
inline constexpr std::chrono::seconds kHandoverTime{900};    // a sick worker is ended so long after its successor runs
inline constexpr std::chrono::seconds kAskAgain{60};         // what did not come about is done again after so long
// A worker that a reconciler started, and that is sick before this age, is not replaced earlier: what makes machines
// sick one after the other is rather the job, and costs a machine each time.
inline constexpr std::chrono::seconds kLeastAge{1'800};

// Where most workers are sick at once, one is replaced after this time, and the next one when its successor has been
// there for the other and is well.
inline constexpr std::chrono::seconds kMostSickTime{1'800}, kTrialTime{600};

// What a worker has to do with the job that runs on the cluster.
enum class Part {
  unasked,  // this reconciler asks AWS only
  unknown,  // the job could not be asked
  no_job,
  fixed,    // the job runs, and its hosts cannot change
  outside,  // it does not train, and is not about to
  joining,
  spare,  // it trains as soon as another one leaves
  trains,
};

// A worker as AWS, and perhaps the head and the job, show it.
struct WorkerSeen {
  std::string id{}, name{};
  bool base = true;
  bool adopted = false;  // a machine of a stack, which dtrain did not start and never ends
  int weight = 1;        // as how many workers it counts
  enum class State { starting, running, stopped, ended } state = State::running;
  Pool pool{};
  std::string sick{};      // why; empty: it is well, or its health is unknown
  bool announced = false;  // AWS has announced its end, which is why it counts as sick
  std::string host{};      // how jobs name it
  Part part = Part::unasked;
  bool listed = false;        // in the job's host file
  bool was_listed = false;    // the job had it before
  bool ready = false;         // registered with the head
  std::string replaced_by{};  // id of the worker that was started in its place
  bool left_itself = false;   // it shut itself down, in a cluster with time limits
  bool reclaimed = false;     // EC2 has taken it back, as it does with spot machines
  std::string end{};          // ended_text() of a machine that has ended
  bool leaves = false;        // the user had it removed
  bool left = false;          // and the wish counts it no more
  bool healed = false;        // a reconciler started it
  std::string launched{};     // orders workers by age; empty: just now
  UnixTime began{0};          // its launch; 0: unknown
};

struct Observed {
  enum class Head { alive, stopped, gone } head = Head::alive;
  std::string ended_head{};     // id of the head that ended last, as long as EC2 lists it; empty: none
  std::string head_end{};       // ended_text() of it
  bool head_left = false;       // and that one shut itself down
  bool has_time_limit = false;  // machines shut themselves down after a time, or when they are idle
  bool complete = true;         // false: the cluster is being made or removed
  bool stopped = false;         // the user has it stopped: nothing is done for it
  std::string spent_budget{};   // budget_text() of a budget that is spent; empty: there is money left, or no budget
  std::vector<WorkerSeen> workers{};
  std::vector<Pool> pools{};  // where workers can be started, in order of preference
};

// Empty after a start of the reconciler, which costs time but breaks nothing.
struct HealMemory {
  struct Rest {
    int failures = 0;
    UnixTime until{0}, since{0};
    UnixTime boot_failed{0};  // when a worker was last seen to have ended soon after its start; 0: none was
    std::string end{};        // WorkerSeen::end of that worker
    bool boots_fail() const { return boot_failed != UnixTime(0); }
  };
  std::map<std::string, Rest> rests{};          // by Pool::place(), for a machine does not show its reservation
  Rest head_rest{};                             // after each attempt to start a head
  std::map<std::string, UnixTime> sick{};       // by id: since when
  std::set<std::string> lost{};                 // ids of machines whose loss is known, or was announced
  std::map<std::string, UnixTime> handovers{};  // by id of a worker that goes: since when its successor runs
  std::map<std::string, UnixTime> asked{};      // by id: when the job was asked to take it, or to let it go
  std::map<std::string, UnixTime> tagged{};     // by id: when it was counted out or replaced; AWS may not show it yet
  struct Left {
    std::string name{};
    bool base = true;
    int weight = 1;
  };
  std::map<std::string, Left> left{};  // by id: workers that shut themselves down, and were not started again
  std::string lost_head{};             // id of the head that ended last, while there is none; empty: unknown
  bool head_left = false;              // and that one shut itself down
  UnixTime surplus_since{0};           // 0: there is no surplus
};

struct HealAction {
  enum class Kind {
    restore_head,
    count_out,       // lower the wish by `count` for `id`, which left on purpose
    start_workers,   // `count`, base or elastic, from one of `pools`
    replace,         // start `count` workers to replace `id`
    join,            // add `host`, that of `id`, to the job
    drain,           // let `host`, that of `id`, leave the job
    finish_replace,  // end `id`, whose replacement `other` runs
    end,             // end `id`, a worker beyond the wish
    close,           // stop the job with a checkpoint, then end `ids`: all workers, except for adopted ones
  };
  Kind kind = Kind::start_workers;
  bool base = true;
  int count = 0;
  std::vector<Pool> pools{};
  std::string id{}, other{}, host{};
  std::vector<std::string> ids{};  // of close: the workers that are ended
  std::string reason{};            // a sentence for the user
};
constexpr EnumName<HealAction::Kind> kHealActionNames[] = {{HealAction::Kind::restore_head, "restore-head"},
                                                           {HealAction::Kind::count_out, "count-out"},
                                                           {HealAction::Kind::start_workers, "start-workers"},
                                                           {HealAction::Kind::replace, "replace"},
                                                           {HealAction::Kind::join, "join"},
                                                           {HealAction::Kind::drain, "drain"},
                                                           {HealAction::Kind::finish_replace, "finish-replace"},
                                                           {HealAction::Kind::end, "end"},
                                                           {HealAction::Kind::close, "close"}};

struct HealDecision {
  std::vector<HealAction> actions{};
  std::vector<std::string> waits{};  // why something that is wanted is not done now
  bool hurries = false;              // a handover is under way: decide again after a few seconds
  HealMemory memory{};
};
// `least`: below this number of workers, pools rest for less long.
HealDecision reconcile(const Observed& observed, const Wish& wish, int least, HealMemory memory, UnixTime now);

// What is remembered after a request for workers: a pool that gave none rests, each time for twice as long. Where
// the machines of a pool end soon after their start, its rest ends once one of them stays.
HealMemory after_attempts(HealMemory memory, const std::vector<Attempt>& attempts, UnixTime now);
// What is remembered after an attempt to start a head: the next attempt waits, each time for twice as long, until a
// head has stayed for kLeastAge.
HealMemory after_head_start(HealMemory memory, UnixTime now);

// The pools in the order in which lost workers are refilled: in each zone each market, in each market each type, so
// that another type is tried first, then another market, then another zone; the zone of the head comes first.
std::vector<Pool> refill_pools(const Spec& spec, const Account& account, const std::string& zone);

struct Sickness {
  std::string why{};
  bool announced = false;  // by AWS: the machine is taken back
};
using Sick = std::map<std::string, Sickness>;  // by instance id
Sick sick_in(const std::vector<NodeHealth>& nodes);

// What the fleet and the job show. `job`: nullopt, it is not asked.
Observed observed_in(const Fleet& fleet, const Sick& sick, const std::optional<TagSyncView>& job,
                     std::vector<Pool> pools);

}  // namespace dtrain::cluster
