// Random stories of a cluster in a cloud that is made up here: spot machines are reclaimed, zones run dry, machines
// become sick, one by one and many at once, AWS shows what was made or tagged a while later, calls fail, heads are lost
// between two actions, reconcilers are killed between any two calls, and two of them act at once. In the end the wish
// is reached again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/reconcile.hpp>

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
using Kind = HealAction::Kind;
using State = WorkerSeen::State;

constexpr std::chrono::seconds kLook{20};
constexpr std::chrono::seconds kTrouble{3'600};   // this long things go wrong
constexpr std::chrono::seconds kCalm{7'200};      // and this long they do not
constexpr std::chrono::seconds kShownFor{3'600};  // AWS shows a terminated machine

constexpr std::chrono::seconds kToRegister{60}, kToJoin{50}, kToLeave{20};
constexpr std::chrono::seconds kTagLag{30};

struct Machine {
  WorkerSeen worker;
  UnixTime made{0}, visible{0}, ended{0};  // ended 0: it runs
  UnixTime joins{0}, leaves{0};            // when the job's host file got it, and lost it; 0: never
};

// An elastic job, which takes a while to take a worker and to let one go.
void show_job(const Machine& one, UnixTime registers, UnixTime now, WorkerSeen& worker) {
  const bool has = one.joins > 0s, had = one.leaves > 0s;
  worker.host = worker.id;
  worker.ready = now - registers >= kToRegister;
  worker.listed = has && !had;
  worker.was_listed = has;
  worker.part = Part::outside;
  if (has && now - one.joins < kToJoin) worker.part = Part::joining;
  if (has && now - one.joins >= kToJoin) worker.part = Part::trains;
  if (had && now - one.leaves >= kToLeave) worker.part = Part::outside;
}

class Cloud {
 public:
  explicit Cloud(unsigned seed) : random_(seed) {
    for (const char* zone : {"a", "b"}) {
      for (const Market market : {Market::spot, Market::on_demand}) {
        pools.push_back({market, "g5.xlarge", zone, zone});
        pools.push_back({market, "g6.xlarge", zone, zone});
      }
    }
  }

  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(random_) < probability; }
  std::size_t some(std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random_); }

  std::string start(bool base, const Pool& pool, bool healed) {
    const std::string id = fmt::format("i-{:04}", machines.size());
    const UnixTime shown = now + std::chrono::seconds(healed && lags ? some(50) : 0);
    WorkerSeen worker{.id = id, .name = id, .base = base, .state = State::starting, .pool = pool, .healed = healed};
    worker.launched = fmt::format("{:08}", now.count());
    worker.began = now;
    machines.push_back({worker, now, shown});
    if (!healed) machines.back().joins = now;
    return id;
  }

  // What was tagged lately may be shown as it was before.
  Observed look() {
    Observed seen = look_now();
    for (WorkerSeen& one : seen.workers) {
      const auto old = tagged_.find(one.id);
      if (!lags || old == tagged_.end() || now - old->second.at > kTagLag || chance(0.5)) continue;
      one.left = old->second.left;
      one.replaced_by = old->second.replaced_by;
    }
    return seen;
  }
  Machine& to_tag(const std::string& id) {
    Machine& one = machine(id);
    tagged_[id] = {now, one.worker.left, one.worker.replaced_by};
    return one;
  }

  Observed look_now() const {
    Observed seen{.head = has_head ? Observed::Head::alive : Observed::Head::gone, .pools = pools};
    for (const Machine& one : machines) {
      const bool forgotten = one.ended > 0s && now - one.ended > kShownFor;
      if (one.visible > now || forgotten) continue;
      seen.workers.push_back(one.worker);
      WorkerSeen& worker = seen.workers.back();
      if (one.ended > 0s)
        worker.state = State::ended;
      else if (now - one.made > 30s)
        worker.state = State::running;
      if (has_job && has_head) show_job(one, std::max(one.made, head_since), now, worker);
      if (has_job && !has_head) worker.part = Part::unknown;
    }
    return seen;
  }

  bool trains(const std::string& id) const {
    if (!has_job) return false;
    const Observed seen = look_now();
    return std::ranges::any_of(seen.workers,
                               [&](const WorkerSeen& one) { return one.id == id && one.part == Part::trains; });
  }

  // As tags do it: added workers join once.
  void sync_tags() {
    for (Machine& one : machines) {
      if (has_job && !one.worker.base && one.joins == 0s && now - one.made >= kToRegister) one.joins = now;
    }
  }

  Machine& machine(const std::string& id) {
    return *std::ranges::find(machines, id, [](const Machine& one) { return one.worker.id; });
  }

  void end(const std::string& id) {
    for (Machine& one : machines) {
      if (one.worker.id == id && one.ended == 0s) one.ended = now;
    }
  }

  void harm() {
    for (Machine& one : machines) {
      if (one.ended > 0s) continue;
      if (one.worker.pool.market == Market::spot && chance(0.01)) one.ended = now, one.worker.reclaimed = true;
      if (chance(0.002)) one.worker.sick = "the machine below it is impaired";
    }
    if (chance(0.03)) dry.insert(pools[some(pools.size())].text());
    if (chance(0.03)) dry.clear();
    if (chance(0.005)) has_head = false;
    if (chance(0.003)) {
      for (Machine& one : machines) {
        if (chance(0.7)) one.worker.sick = "what they all share is impaired";
      }
    }
    if (chance(0.002)) {
      for (Machine& one : machines) {
        if (one.ended == 0s) one.ended = now;
      }
    }
  }

  int running(bool base) const {
    int count = 0;
    for (const Machine& one : machines) count += one.ended == 0s && one.worker.base == base && !one.worker.leaves;
    return count;
  }

  UnixTime now{1'000'000};
  std::vector<Pool> pools;
  std::vector<Machine> machines;
  std::set<std::string> dry;  // pools without machines
  bool has_head = true;
  UnixTime head_since{0};  // workers register with a new one again
  Lease lease;
  Wish wish{.base = 4, .elastic = 2};
  bool lags = true, has_job = false, two_at_once = false, any_killed = false;
  int removed = 0;  // added workers, by the user

 private:
  struct Shown {
    UnixTime at{0};
    bool left = false;
    std::string replaced_by{};
  };
  std::map<std::string, Shown> tagged_;  // by id: what was there before the last change of its tags
  std::mt19937 random_;
};

// As Healer: takes the lease, decides, acts. Each action may be its last.
class Reconciler {
 public:
  Reconciler(Cloud& cloud, std::string name) : cloud_(cloud), name_(std::move(name)) {}

  // `trouble`: this one may die at any call, calls may fail, and it may not have seen that another one acts.
  void look(bool trouble) {
    const LeaseState state = lease_state(cloud_.lease, name_, cloud_.now);
    const bool is_blind = trouble && cloud_.chance(0.02);
    if (state == LeaseState::taken && !is_blind) return;
    cloud_.two_at_once |= state == LeaseState::taken;
    cloud_.lease = {name_, cloud_.now};
    trouble_ = trouble;
    const Wish before = cloud_.wish;
    wish_ = before;
    Observed seen = cloud_.look();
    for (const auto& [at, id] : started_) add_started(seen, at, id);
    HealDecision made = reconcile(seen, wish_, 3, std::move(memory_), cloud_.now);
    memory_ = std::move(made.memory);
    try {
      for (const HealAction& action : made.actions) {
        EXPECT_FALSE(action.reason.empty());
        may_die();
        if (!trouble || !cloud_.chance(0.03)) carry_out(action);
        if (trouble && cloud_.chance(0.01)) cloud_.has_head = false;
      }
      may_die();
      if (wish_ != before) cloud_.wish = wish_;
    } catch (const Killed&) {
      die();
    }
  }

 private:
  struct Killed {};
  void may_die() {
    if (trouble_ && cloud_.chance(0.03)) throw Killed();
  }

  // A process that is started anew has another name and remembers nothing.
  void die() {
    cloud_.any_killed = true;
    memory_ = {};
    started_.clear();
    name_ += "'";
  }

  void add_started(Observed& seen, UnixTime at, const std::string& id) const {
    const bool is_shown = std::ranges::any_of(seen.workers, [&](const WorkerSeen& one) { return one.id == id; });
    if (is_shown || cloud_.now - at > 60s) return;
    for (const Machine& one : cloud_.machines) {
      if (one.worker.id == id) seen.workers.push_back(one.worker);
    }
  }

  void carry_out(const HealAction& action) {
    switch (action.kind) {
      case Kind::restore_head:
        cloud_.has_head = true;
        cloud_.head_since = cloud_.now;
        memory_ = after_head_start(std::move(memory_), cloud_.now);
        return;
      case Kind::count_out: {
        cloud_.to_tag(action.id).worker.left = true;
        int& count = action.base ? wish_.base : wish_.elastic;
        count = std::max(count - action.count, 0);
        return;
      }
      case Kind::start_workers:
      case Kind::replace:
        return start(action);
      case Kind::join:
        cloud_.machine(action.id).joins = cloud_.now;
        return;
      case Kind::drain:
        cloud_.machine(action.id).leaves = cloud_.now;
        return;
      case Kind::finish_replace:
        EXPECT_TRUE(!cloud_.trains(action.id) || action.reason.find("within") != action.reason.npos) << action.reason;
        return cloud_.end(action.id);
      case Kind::end:
        return cloud_.end(action.id);
      case Kind::close:
        for (const std::string& id : action.ids) cloud_.end(id);
        return;
    }
  }

  // A pool gives all, some or none.
  void start(const HealAction& action) {
    std::vector<Attempt> attempts;
    for (const Pool& pool : action.pools) {
      int got = cloud_.dry.contains(pool.text()) ? 0 : action.count;
      if (got > 1 && cloud_.chance(0.2)) got = 1;
      attempts.push_back({pool, action.count, got, got < action.count ? "InsufficientInstanceCapacity" : "", ""});
      for (int at = 0; at < got; ++at) {
        const std::string id = cloud_.start(action.base, pool, true);
        started_.emplace_back(cloud_.now, id);
      }
      may_die();
      if (got > 0 && action.kind == Kind::replace) cloud_.to_tag(action.id).worker.replaced_by = started_.back().second;
      if (got > 0) break;
    }
    memory_ = after_attempts(std::move(memory_), attempts, cloud_.now);
  }

  Cloud& cloud_;
  std::string name_;
  bool trouble_ = false;
  Wish wish_;  // as it was read, and what this look makes of it
  HealMemory memory_;
  std::vector<std::pair<UnixTime, std::string>> started_;
};

// The user removes an added worker.
void remove_one(Cloud& cloud) {
  for (Machine& one : cloud.machines) {
    if (one.ended > 0s || one.worker.base || one.worker.leaves || cloud.now < one.visible) continue;
    one.worker.leaves = true;
    one.ended = cloud.now;
    ++cloud.removed;
    return;
  }
}

void play_story(unsigned seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Cloud cloud(seed);
  cloud.has_job = seed % 2 == 0;
  for (int at = 0; at < cloud.wish.base; ++at) cloud.start(true, cloud.pools[0], false);
  for (int at = 0; at < cloud.wish.elastic; ++at) cloud.start(false, cloud.pools[0], false);
  Reconciler first(cloud, "first"), second(cloud, "second");
  const UnixTime calm = cloud.now + kTrouble, end = calm + kCalm;
  int most = 0;
  while (cloud.now < end) {
    const bool trouble = cloud.now < calm;
    if (trouble) cloud.harm();
    if (trouble && cloud.chance(0.002)) remove_one(cloud);
    if (!trouble) cloud.dry.clear();
    cloud.sync_tags();
    first.look(trouble);
    if (cloud.chance(0.5)) second.look(trouble);
    cloud.now += kLook;
    most = std::max(most, cloud.running(true) + cloud.running(false));
  }
  EXPECT_TRUE(cloud.has_head);
  EXPECT_EQ(cloud.running(true), cloud.wish.base);
  // Tags cannot be compared and set in one call: two that act at once, while AWS does not show a mark, may count a
  // worker out twice; what the user added is not ended for that.
  if (!cloud.two_at_once) {
    EXPECT_EQ(cloud.running(false), cloud.wish.elastic);
  }
  EXPECT_GE(cloud.running(false), cloud.wish.elastic);
  EXPECT_LE(cloud.running(false), 2);
  EXPECT_EQ(cloud.wish.base, 4);
  EXPECT_GE(cloud.wish.elastic, cloud.two_at_once ? 0 : 2 - cloud.removed) << "each that left is counted out once";
  // Two that act at once may both start what lacks, and one that is killed leaves successors without a predecessor.
  EXPECT_LE(most, cloud.two_at_once || cloud.any_killed ? 18 : 12) << "machines at once, of 6 that are wanted";
  for (const Machine& one : cloud.machines) {
    if (one.ended > 0s) continue;
    EXPECT_TRUE(one.worker.sick.empty()) << one.worker.id;
    EXPECT_TRUE(!cloud.has_job || cloud.trains(one.worker.id)) << one.worker.id;
  }
}

TEST(HealStories, EndAsWanted) {
  const char* const more = std::getenv("DTRAIN_HEAL_SEEDS");
  const auto count = more ? parse_integer(more).value_or(200) : 200;
  for (unsigned seed = 1; seed <= count; ++seed) play_story(seed);
}

}  // namespace
}  // namespace dtrain::cluster
