// Random stories of a cluster whose head is lost while no machine of the user watches, in an EC2 that is made up here:
// heads end and are cut off, EC2 shows changes a while later, has no machine for a time, loses replies; workers come
// and go, are started anew, and look at the head at different times; a watch of the user acts too. There are never two
// heads, none is started beside one that runs, and in the end there is one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <optional>
#include <random>

#include <dtrain/base/text.hpp>
#include <dtrain/cluster/head_guard.hpp>

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
using Head = HeadSeen::Head;

constexpr std::chrono::seconds kPatience{180}, kTick{10}, kHeadTrouble{7'200}, kHeadCalm{7'200}, kHeadShownFor{3'600},
    kEnding{40}, kLag{30};
constexpr int kWorkers = 5;

struct HeadMachine {
  std::string id;
  UnixTime made{0}, ended{0};  // ended 0: it runs
  bool reachable = true;
};

class Ec2 {
 public:
  explicit Ec2(unsigned seed) : random_(seed) { make_head(); }

  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(random_) < probability; }
  std::chrono::seconds some(int below) {
    return std::chrono::seconds(std::uniform_int_distribution<>(0, below - 1)(random_));
  }

  HeadMachine& last() { return heads.back(); }
  bool has_head() { return last().ended == 0s; }
  bool reaches() { return has_head() && last().reachable && now - last().made > 60s; }

  void make_head() {
    heads.push_back({fmt::format("i-{:03}", heads.size()), now});
    changed_ = now;
  }
  void end_head() {
    if (!has_head()) return;
    last().ended = now;
    changed_ = now;
  }

  // As EC2 shows it, perhaps as it was a while ago.
  HeadSeen look() {
    if (frozen) return *frozen;
    const UnixTime at = lags && now - changed_ < kLag && chance(0.5) ? changed_ - 1s : now;
    HeadSeen seen{.head = Head::gone, .workers = {}};
    for (const HeadMachine& one : heads) {
      if (one.made > at || (one.ended > 0s && one.ended <= at && at - one.ended > kHeadShownFor)) continue;
      seen.id = one.id;
      seen.head = one.ended == 0s || one.ended > at ? Head::alive
                  : at - one.ended < kEnding        ? Head::ending
                                                    : Head::ended;
    }
    for (int worker = 0; worker < kWorkers; ++worker) {
      if (runs[worker]) seen.workers.push_back(std::to_string(worker));
    }
    return seen;
  }

  // RunInstances at one address, with a token. Whether the caller learns that it has a head.
  bool start(const std::string& lost) {
    ++asked;
    blunders += has_head() && now - last().made >= kLag;
    if (chance(lags ? 0.1 : 0)) return false;  // the request is lost
    for (int trial = 0;; ++trial) {
      const auto [made, is_new] = tokens_.try_emplace(fmt::format("{} {}", lost, trial), "");
      if (!is_new) {
        const auto there = std::ranges::find(heads, made->second, &HeadMachine::id);
        if (there->ended == 0s) return true;
        continue;  // IdempotentInstanceTerminated
      }
      const bool address_is_taken = has_head() || now - last().ended < kEnding;
      if (address_is_taken || dry) {
        tokens_.erase(made);
        return false;
      }
      make_head();
      made->second = last().id;
      return !chance(lags ? 0.2 : 0);  // the reply is lost
    }
  }

  UnixTime now{1'000'000};
  std::vector<HeadMachine> heads;
  std::map<int, bool> runs;  // workers
  bool dry = false, lags = true;
  Lease lease;
  std::optional<HeadSeen> frozen;  // what all see
  int asked = 0, blunders = 0;     // orders of a head, and those beside one that EC2 had time to show

 private:
  std::map<std::string, std::string> tokens_;
  UnixTime changed_{0};
  std::mt19937 random_;
};

// As HeadGuard.
struct Guard {
  std::string me;
  UnixTime unreached{0}, next{0};
  HeadMemory memory{};

  void look(Ec2& ec2) {
    if (ec2.reaches()) {
      *this = {me};
      return;
    }
    if (unreached == 0s) unreached = ec2.now;
    if (ec2.now - unreached < 30s || ec2.now < next) return;
    next = ec2.now + 20s;
    HeadDecision decision = decide(ec2);
    memory = decision.memory;
    if (!decision.start) return;
    EXPECT_NE(lease_state(ec2.lease, me, ec2.now), LeaseState::taken);
    ec2.lease = {me, ec2.now};
    decision = decide(ec2);
    memory = decision.memory;
    if (!decision.start) return;
    memory = after_start(memory, ec2.start(memory.lost), ec2.now);
    ec2.lease = {};
  }
  HeadDecision decide(Ec2& ec2) {
    HeadSeen seen = ec2.look();
    if (lease_state(ec2.lease, me, ec2.now) == LeaseState::taken) seen.keeper = ec2.lease.holder;
    return decide_head(seen, me, kPatience, memory, ec2.now);
  }
};

void harm(Ec2& ec2, std::vector<Guard>& guards) {
  if (ec2.chance(0.004)) ec2.end_head();
  if (ec2.chance(0.01)) ec2.last().reachable = !ec2.last().reachable;
  if (ec2.chance(0.02)) ec2.dry = !ec2.dry;
  const int one = static_cast<int>(ec2.some(kWorkers).count());
  if (ec2.chance(0.01)) ec2.runs[one] = !ec2.runs[one];
  if (ec2.chance(0.01)) guards[static_cast<std::size_t>(one)] = {std::to_string(one)};
  // A watch of the user comes, acts or not, and is silent again.
  if (ec2.chance(0.005)) ec2.lease = {"watch", ec2.now};
}

void play_head_story(unsigned seed) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  Ec2 ec2(seed);
  std::vector<Guard> guards;
  for (int worker = 0; worker < kWorkers; ++worker) {
    guards.push_back({std::to_string(worker)});
    ec2.runs[worker] = true;
  }
  const UnixTime calm = ec2.now + kHeadTrouble, end = calm + kHeadCalm;
  while (ec2.now < end) {
    const bool trouble = ec2.now < calm;
    if (trouble) harm(ec2, guards);
    if (!trouble) {
      ec2.dry = ec2.lags = false;
      ec2.last().reachable = true;
      ec2.runs[3] = true;
    }
    for (int worker = 0; worker < kWorkers; ++worker) {
      if (ec2.runs[worker]) guards[static_cast<std::size_t>(worker)].look(ec2);
    }
    int alive = 0;
    for (const HeadMachine& one : ec2.heads) alive += one.ended == 0s;
    ASSERT_LE(alive, 1);
    ec2.now += kTick;
  }
  EXPECT_TRUE(ec2.reaches());
  EXPECT_EQ(ec2.blunders, 0);
}

TEST(HeadStories, EndWithOneHead) {
  const char* const more = std::getenv("DTRAIN_HEAL_SEEDS");
  const auto count = more ? parse_integer(more).value_or(300) : 300;
  for (unsigned seed = 1; seed <= count; ++seed) play_head_story(seed);
}

TEST(HeadStories, AHeadThatIsOnlyCutOffIsNeverReplaced) {
  Ec2 ec2(1);
  std::vector<Guard> guards;
  for (int worker = 0; worker < kWorkers; ++worker) {
    guards.push_back({std::to_string(worker)});
    ec2.runs[worker] = true;
  }
  ec2.last().reachable = false;
  for (; ec2.now < UnixTime(1'000'000) + 24h; ec2.now += kTick) {
    for (Guard& guard : guards) guard.look(ec2);
  }
  EXPECT_EQ(ec2.asked, 0);
}

// All workers decide at the same second, before one of them sees what another one does: those whose turn it is not yet
// wait.
TEST(HeadStories, OneAttemptIsMadeWhereAllLookAtOnce) {
  Ec2 ec2(2);
  ec2.lags = false;
  std::vector<Guard> guards;
  for (int worker = 0; worker < kWorkers; ++worker) {
    guards.push_back({std::to_string(worker)});
    ec2.runs[worker] = true;
  }
  ec2.now += 1h;
  ec2.end_head();
  const UnixTime lost = ec2.now;
  while (!ec2.has_head() && ec2.now < lost + 1h) {
    ec2.now += kTick;
    ec2.frozen = ec2.look();
    for (Guard& guard : guards) guard.look(ec2);
    ec2.frozen.reset();
  }
  EXPECT_LE(ec2.now - lost, 30s + kPatience + 20s + 2 * kTick);
  EXPECT_EQ(ec2.heads.size(), 2U);
  EXPECT_EQ(ec2.asked, 1);
}

}  // namespace
}  // namespace dtrain::cluster
