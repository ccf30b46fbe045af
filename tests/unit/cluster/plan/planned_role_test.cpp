// What `cluster plan` says of the rights of the head's role, against the policy that `up` gives it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include <dtrain/cluster/plan.hpp>
#include <dtrain/cluster/rights.hpp>

namespace dtrain::cluster {
namespace {

Plan plan_of(bool heals) {
  Spec spec;
  spec.workers = 2;
  spec.instance_types = {"c5.large"};
  spec.elastic_role = "own";
  spec.heal = heals;
  Account account{.region = "us-east-1", .vpc_id = "vpc-1", .key = "mine"};
  account.ssh_source = "1.2.3.4/32";
  account.subnets = {{"subnet-a", "vpc-1", "a", true}};
  account.types["c5.large"] = {.name = "c5.large", .vcpus = 2, .architecture = "x86_64", .zones = {"a"}};
  return plan_up(spec, {}, account, {.name = "demo"});
}

std::set<std::string> actions_of(const Json& policy) {
  std::set<std::string> actions;
  for (const Json& statement : policy.at("Statement").as_array()) {
    const Json& of_one = statement.at("Action");
    if (of_one.is_string()) actions.insert(of_one.as_string());
    if (of_one.is_array()) {
      for (const Json& action : of_one.as_array()) actions.insert(action.as_string());
    }
  }
  return actions;
}

bool only_reads(const std::string& action) {
  return action.find(":Describe") != action.npos || action.find(":Get") != action.npos ||
         action.find(":List") != action.npos;
}

TEST(PlannedRole, SaysAllThatTheHeadMayDo) {
  const std::map<std::string, std::string> words = {{"ec2:CreateFleet", "to start workers"},
                                                    {"ec2:RunInstances", "to start workers"},
                                                    {"ec2:CreateTags", "to tag"},
                                                    {"ec2:TerminateInstances", "end its workers"},
                                                    {"iam:PassRole", "give them their role"}};
  for (const bool heals : {false, true}) {
    const Plan plan = plan_of(heals);
    const auto role = std::ranges::find(plan.actions, Step::role, &Action::step);
    ASSERT_NE(role, plan.actions.end());
    const std::set<std::string> actions = actions_of(head_rights({.cluster = "demo", .heals = heals}));
    for (const std::string& action : actions) {
      if (only_reads(action)) continue;
      ASSERT_TRUE(words.contains(action)) << action << ": the plan must say it";
      EXPECT_NE(role->what.find(words.at(action)), std::string::npos) << action << ": " << role->what;
    }
    EXPECT_EQ(actions.contains("ec2:RunInstances"), role->what.find("to start") != std::string::npos) << role->what;
  }
}

}  // namespace
}  // namespace dtrain::cluster
