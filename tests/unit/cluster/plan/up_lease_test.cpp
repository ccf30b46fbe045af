#include <dtrain/cluster/up_lease.hpp>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dtrain/base/error.hpp>

namespace dtrain::cluster {
namespace {

constexpr UnixTime kNow{1'700'000'000};
constexpr const char* kElsewhere = "7.abc.def";  // a process of another machine

Fleet leased(const std::string& holder, UnixTime at) {
  return {.name = "demo", .group = SecurityGroup{.id = "sg-1", .tags = {{tag::kUp, lease_text({holder, at})}}}};
}

// A process that has ended.
std::string ended_holder() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  std::string holder = up_holder(child);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return holder;
}

// A group as AWS has it.
struct Group {
  Fleet fleet = leased("", kNow);
  UnixTime now = kNow;
  int writes = 0;
  UpLease lease() {
    return UpLease([this] { return now; },
                   [this](const Tags& tags) {
                     ++writes;
                     for (const auto& [key, value] : tags) fleet.group->tags[key] = value;
                   },
                   [](const std::string&) {});
  }
  bool take(
      UpLease& lease, const std::function<void()>& pause = [] {}) {
    return lease.take([this] { return fleet; }, "us-east-1", pause);
  }
};

TEST(UpLease, HoldsWhileItsProcessMayRun) {
  EXPECT_TRUE(lease_of_other_up(leased(kElsewhere, kNow - UnixTime(60)), "me", kNow));
  EXPECT_TRUE(lease_of_other_up(leased(up_holder(::getpid()), kNow), "me", kNow));
  EXPECT_FALSE(lease_of_other_up(leased("me", kNow), "me", kNow));
  EXPECT_FALSE(lease_of_other_up(leased("", kNow), "me", kNow));
  EXPECT_FALSE(lease_of_other_up(leased(kElsewhere, kNow - kUpLeaseTime), "me", kNow));
  EXPECT_FALSE(lease_of_other_up(leased(kElsewhere, kNow + 2 * kUpLeaseTime), "me", kNow)) << "a wrong clock";
  EXPECT_FALSE(lease_of_other_up({.name = "demo"}, "me", kNow));
}

TEST(UpLease, EndsWithItsProcessOnTheSameMachine) {
  EXPECT_FALSE(lease_of_other_up(leased(ended_holder(), kNow), "me", kNow));
  EXPECT_FALSE(has_holder_ended(up_holder(::getpid())));
  EXPECT_FALSE(has_holder_ended(kElsewhere));
  EXPECT_FALSE(has_holder_ended("no process"));
}

TEST(UpLease, OfAnotherOneIsRefusedWithTheWayOut) {
  try {
    refuse_other_up(leased(kElsewhere, kNow - UnixTime(12)), "us-east-1", "me", kNow);
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(),
              std::string("another `up` makes cluster demo in us-east-1: its last sign of life is 12 s old"));
    EXPECT_NE(error.hint().find("dtrain cluster down demo setting 'region' us-east-1"), std::string::npos);
  }
}

TEST(UpLease, IsTakenFromAnInterruptedUpOnly) {
  Group group;
  UpLease lease = group.lease();
  EXPECT_TRUE(group.take(lease));
  EXPECT_TRUE(lease.is_held());
  group.fleet = leased(kElsewhere, kNow);
  UpLease second = group.lease();
  EXPECT_THROW(group.take(second), UsageError);
  EXPECT_FALSE(second.is_held());
  group.fleet.group->tags[tag::kWish] = "{}";
  EXPECT_FALSE(group.take(second)) << "the other one has finished";
}

TEST(UpLease, IsThatOfTheLastOfTwoThatWriteAtOnce) {
  Group group;
  UpLease lease = group.lease();
  EXPECT_THROW(group.take(lease, [&] { group.fleet = leased(kElsewhere, kNow); }), UsageError);
  EXPECT_FALSE(lease.is_held());
}

TEST(UpLease, IsRenewedOnceItIsOld) {
  Group group;
  UpLease lease = group.lease();
  lease.renew();
  EXPECT_EQ(group.writes, 0) << "it is not held";
  lease.take_free(group.fleet);
  lease.renew();
  EXPECT_EQ(group.writes, 1);
  group.now += kRenewAfter;
  lease.renew();
  EXPECT_EQ(group.writes, 2);
  lease.forget();
  group.now += kRenewAfter;
  lease.renew();
  EXPECT_EQ(group.writes, 2);
}

}  // namespace
}  // namespace dtrain::cluster
