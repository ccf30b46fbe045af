// A worker that starts the head of its cluster again. All workers watch the head; EC2 decides whether it has ended, and
// the workers take turns: the first worker by name acts, and the next one only if the first did not. What they start
// comes from one launch template with one private address (template_of_head()), so that EC2 itself refuses a second
// head.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>
#include <dtrain/cluster/node_order.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {

inline constexpr std::chrono::seconds kHeadTurn{120};  // between the turns of two workers: a lease ends by itself
inline constexpr std::chrono::seconds kHeadShows{60};  // EC2 lists a started head within this time
// The pause after a failed attempt, which doubles with each further one, and its limit.
inline constexpr std::chrono::seconds kFirstHeadPause{30}, kLongestHeadPause{1'800};

// The head as EC2 shows it, and what else counts.
struct HeadSeen {
  bool complete = true;  // group and launch templates are there
  bool stopped = false;  // the whole cluster, by its owner
  enum class Head {
    alive,    // it runs or starts
    ending,   // it still has its address
    stopped,  // it can be started, and still has its address
    ended,    // EC2 lists it as terminated
    gone,     // EC2 does not list it
  } head = Head::alive;
  std::string id{};                    // instance id of the head; empty: gone
  bool shut_down_from_inside = false;  // it ended itself, as time limits and idle nodes do
  bool may_end_itself = false;         // the cluster has such limits
  std::string keeper{};                // another reconciler that acts; empty: none
  std::string spent_budget{};          // as Observed::spent_budget
  std::vector<std::string> workers{};  // ids of those that run, in the order of their turns
};
// `me`: the holder of a lease that is not another's.
HeadSeen head_seen_in(const Fleet& fleet, const std::string& me, UnixTime now);

struct HeadMemory {
  UnixTime gone_since{0};  // EC2 has shown no head since then; 0: it has one, or was not asked
  std::string lost{};      // id of the head that ended last, also when EC2 does not list it any more; empty: unknown
  bool left = false;       // and that one has shut itself down
  UnixTime tried{0};       // the last attempt to start one
  int failures = 0;        // attempts in a row
};

struct HeadDecision {
  bool start = false;
  std::string why{};  // a sentence for the user: why a head is started, or why none is
  HeadMemory memory{};
};
// Pure. For a head that this machine cannot reach; `me`: the instance id of this worker.
HeadDecision decide_head(const HeadSeen& seen, const std::string& me, std::chrono::seconds patience, HeadMemory memory,
                         UnixTime now);
// What is remembered of an attempt.
HeadMemory after_start(HeadMemory memory, bool started, UnixTime now);

// One thread.
class HeadGuard {
 public:
  // `me`: the instance id of this worker. `reaches_head`: whether the program of the head answers.
  HeadGuard(AwsContext context, NodeOrder order, std::string me, std::function<bool()> reaches_head,
            std::function<UnixTime()> clock);

  // Asks the head, and EC2 only if it does not answer for a while. Returns what is to be told: what was done, or why
  // nothing is; empty: the head is there. Throws what AwsCalls throws.
  std::string look();

 private:
  std::string start(Fleet fleet, const std::string& holder);

  AwsContext context_;
  const NodeOrder order_;
  const std::string me_;
  std::function<bool()> reaches_head_;
  std::function<UnixTime()> clock_;
  std::optional<std::chrono::steady_clock::time_point> unreached_since_{};
  std::chrono::steady_clock::time_point next_{};  // when EC2 is asked again
  HeadMemory memory_{};
  std::string told_{};
};

struct GuardOptions {
  NodeOrder order;
  std::function<void(const std::string& line)> on_note{};
};
// Guards the head until a stop signal; every failure is retried.
void guard_head(const GuardOptions& options);

}  // namespace dtrain::cluster
