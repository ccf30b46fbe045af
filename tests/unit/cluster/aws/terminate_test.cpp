#include "aws/terminate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace dtrain::cluster {
namespace {

using Ids = std::vector<std::string>;

net::AwsError error(const std::string& code, const std::string& message) {
  return net::refusal("ec2 TerminateInstances", code, message);
}

// EC2's rule: one unknown or protected instance refuses the whole call.
struct Account {
  std::set<std::string> there, guarded, ended{};
  bool names_ids = true;
  int calls = 0;

  void terminate(const Ids& ids) {
    ++calls;
    for (const std::string& id : ids) {
      const std::string name = names_ids ? id : "one of them";
      if (guarded.contains(id))
        throw error("OperationNotPermitted", "The instance '" + name + "' may not be terminated");
      if (!there.contains(id))
        throw error("InvalidInstanceID.NotFound", "The instance ID '" + name + "' does not exist");
    }
    ended.insert(ids.begin(), ids.end());
  }
};

TEST(Terminate, EndsTheOthersWhereOneIsUnknown) {
  for (const bool names_ids : {true, false}) {
    Account account{.there = {"i-1", "i-2", "i-4"}, .guarded = {}, .names_ids = names_ids};
    const auto refused = each_for_itself({"i-1", "i-2", "i-3", "i-4"}, [&](const Ids& ids) { account.terminate(ids); });
    EXPECT_TRUE(refused.empty());
    EXPECT_EQ(account.ended, account.there);
  }
}

TEST(Terminate, NamesProtectedInstances) {
  Account account{.there = {"i-1", "i-2", "i-3"}, .guarded = {"i-1", "i-3"}};
  const auto refused = each_for_itself({"i-1", "i-2", "i-3"}, [&](const Ids& ids) { account.terminate(ids); });
  ASSERT_EQ(refused.size(), 2u);
  EXPECT_EQ(account.ended, std::set<std::string>{"i-2"});
  EXPECT_EQ(net::cause_class(refused[0].why.facts().problem), "config");
  EXPECT_NE(refused[0].why.hint().find("--no-disable-api-termination"), std::string::npos);
}

TEST(Terminate, NeedsFewCallsForManyInstances) {
  Account account{.there = {}, .guarded = {}, .names_ids = false};
  Ids ids;
  for (int number = 0; number < 500; ++number) ids.push_back("i-" + std::to_string(1000 + number));
  account.there.insert(ids.begin() + 1, ids.end());
  each_for_itself(ids, [&](const Ids& some) { account.terminate(some); });
  EXPECT_EQ(account.ended.size(), 499u);
  EXPECT_LE(account.calls, 20);
}

TEST(StopAndStart, NameEachInstanceThatIsRefused) {
  for (const char* code : {"UnsupportedOperation", "IncorrectInstanceState", "InsufficientInstanceCapacity",
                           "ReservationCapacityExceeded"}) {
    Ids taken;
    const auto refused = each_for_itself({"i-1", "i-2", "i-3"}, [&](const Ids& ids) {
      if (std::ranges::find(ids, "i-2") != ids.end()) throw error(code, "not for one of them");
      taken.insert(taken.end(), ids.begin(), ids.end());
    });
    ASSERT_EQ(refused.size(), 1u) << code;
    EXPECT_EQ(refused.front().instance_id, "i-2");
    EXPECT_EQ(refused.front().why.facts().code, code);
    EXPECT_EQ(taken, (Ids{"i-1", "i-3"}));
  }
}

TEST(Terminate, TakesNoOtherErrorForSuccess) {
  const auto denied = [](const Ids&) { throw error("UnauthorizedOperation", "no"); };
  EXPECT_THROW(each_for_itself({"i-1", "i-2"}, denied), net::AwsError);
}

}  // namespace
}  // namespace dtrain::cluster
