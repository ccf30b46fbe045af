// Random stories of a cluster in a cloud that is made up here: spot machines are reclaimed, zones run dry, machines
// become sick, AWS shows what was made a while later, reconcilers are killed between any two calls, and two of them run
// at once. In the end the wish is reached again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

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

struct Machine {
  WorkerSeen worker;
  UnixTime made{0}, visible{0}, ended{0};  // ended 0: it runs
  UnixTime joins{0}, leaves{0};            // when the job's host file got it, and lost it; 0: never
};

// An elastic job, which takes a while to take a worker and to let one go.
void show_job(const Machine& one, UnixTime now, WorkerSeen& worker) {
  const bool has = one.joins > 0s, had = one.leaves > 0s;
  worker.host = worker.id;
  worker.ready = now - one.made >= kToRegister;
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

  Observed look() const {
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
      if (has_job) show_job(one, now, worker);
    }
    return seen;
  }

  bool trains(const std::string& id) const {
    if (!has_job) return false;
    const Observed seen = look();
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
      if (one.worker.pool.market == Market::spot && chance(0.01)) one.ended = now;
      if (chance(0.002)) one.worker.sick = "the machine below it is impaired";
    }
    if (chance(0.03)) dry.insert(pools[some(pools.size())].text());
    if (chance(0.03)) dry.clear();
    if (chance(0.005)) has_head = false;
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
  Lease lease;
  Wish wish{.base = 4, .elastic = 2};
  bool lags = true, has_job = false;

 private:
  std::mt19937 random_;
};

// As Healer: takes the lease, decides, acts. Each action may be its last.
class Reconciler {
 public:
  Reconciler(Cloud& cloud, std::string name) : cloud_(cloud), name_(std::move(name)) {}

  void look(double dies) {
    const LeaseState state = lease_state(cloud_.lease, name_, cloud_.now);
    if (state == LeaseState::taken) return;
    cloud_.lease = {name_, cloud_.now};
    Observed seen = cloud_.look();
    for (const auto& [at, id] : started_) add_started(seen, at, id);
    HealDecision made = reconcile(seen, cloud_.wish, 3, std::move(memory_), cloud_.now);
    memory_ = std::move(made.memory);
    for (const HealAction& action : made.actions) {
      EXPECT_FALSE(action.reason.empty());
      if (cloud_.chance(dies)) return die();
      carry_out(action);
      if (cloud_.chance(dies)) return die();
    }
  }

 private:
  // A process that is started anew has another name and remembers nothing.
  void die() {
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
        return;
      case Kind::count_out: {
        mark_left(action.id);
        int& count = action.base ? cloud_.wish.base : cloud_.wish.elastic;
        --count;
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

  void mark_left(const std::string& id) {
    for (Machine& one : cloud_.machines) {
      if (one.worker.id == id) one.worker.left = true;
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
        if (action.kind == Kind::replace) set_replaced(action.id, id);
      }
      if (got > 0) break;
    }
    memory_ = after_attempts(std::move(memory_), attempts, cloud_.now);
  }

  void set_replaced(const std::string& bad, const std::string& fresh) {
    for (Machine& one : cloud_.machines) {
      if (one.worker.id == bad) one.worker.replaced_by = fresh;
    }
  }

  Cloud& cloud_;
  std::string name_;
  HealMemory memory_;
  std::vector<std::pair<UnixTime, std::string>> started_;
};

// The user removes an added worker.
void remove_one(Cloud& cloud) {
  for (Machine& one : cloud.machines) {
    if (one.ended > 0s || one.worker.base || one.worker.leaves || cloud.now < one.visible) continue;
    one.worker.leaves = true;
    one.ended = cloud.now;
    return;
  }
}

void play(unsigned seed) {
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
    first.look(trouble ? 0.05 : 0);
    if (cloud.chance(0.5)) second.look(trouble ? 0.05 : 0);
    cloud.now += kLook;
    most = std::max(most, cloud.running(true) + cloud.running(false));
  }
  EXPECT_TRUE(cloud.has_head);
  EXPECT_EQ(cloud.running(true), cloud.wish.base);
  EXPECT_EQ(cloud.running(false), cloud.wish.elastic);
  EXPECT_EQ(cloud.wish.base, 4);
  EXPECT_LE(most, 12) << "machines at once, of 6 that are wanted";
  for (const Machine& one : cloud.machines) {
    if (one.ended > 0s) continue;
    EXPECT_TRUE(one.worker.sick.empty()) << one.worker.id;
    EXPECT_TRUE(!cloud.has_job || cloud.trains(one.worker.id)) << one.worker.id;
  }
}

TEST(HealStories, EndAsWanted) {
  const char* const more = std::getenv("DTRAIN_HEAL_SEEDS");
  const auto count = more ? parse_integer(more).value_or(200) : 200;
  for (unsigned seed = 1; seed <= count; ++seed) play(seed);
}

}  // namespace
}  // namespace dtrain::cluster
