#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/stack.hpp>

namespace dtrain::cluster {
namespace {

StackMachine machine(const std::string& id, const std::string& group, const std::string& type = "c5.large") {
  StackMachine made{.node = {.name = id, .instance_id = id, .state = "running", .private_ip = "10.0.1.5"},
                    .scaling_group = group,
                    .key = "mine",
                    .vpc_id = "vpc-1"};
  made.node.type = type;
  made.node.image_id = "ami-1";
  made.node.subnet_id = group == "masters" ? "subnet-public" : "subnet-private";
  if (group == "masters") made.node.public_ip = "203.0.113.7";
  return made;
}

Stack old_stack() {
  Stack stack{.name = "old", .status = "CREATE_COMPLETE", .file_system = "fs-1"};
  stack.parameters["EFSMountPoint"] = "myEFSvolume";
  stack.groups = {
      {.name = "masters", .logical_id = "MasterAutoScalingGroup", .least = 1, .wanted = 1},
      {.name = "workers", .logical_id = "WorkerAutoScalingGroup", .wanted = 2, .suspended = {"AZRebalance"}}};
  stack.machines = {machine("i-0", "masters"), machine("i-1", "workers"), machine("i-2", "workers")};
  return stack;
}

std::map<std::string, MachineType> known_types() {
  return {{"c5.large", {.name = "c5.large", .architecture = "x86_64"}},
          {"p3.2xlarge", {.name = "p3.2xlarge", .gpus = 1, .gpu_name = "V100", .architecture = "x86_64"}},
          {"m6g.large", {.name = "m6g.large", .architecture = "arm64"}}};
}

Adoption plan(const Stack& stack, const Fleet& fleet = {.name = "demo"}) {
  return plan_adoption(stack, fleet, known_types());
}

TEST(Adoption, TakesTheMasterAsTheHeadAndNewMachinesBesideIt) {
  const Adoption made = plan(old_stack());
  EXPECT_EQ(made.head, "i-0");
  EXPECT_EQ(made.workers, (std::map<std::string, std::string>{{"i-1", "w0001"}, {"i-2", "w0002"}}));
  EXPECT_EQ(made.spec.workers, 2);
  EXPECT_EQ(made.spec.subnet, "subnet-public");
  EXPECT_FALSE(made.spec.private_addresses);
  EXPECT_EQ(made.spec.shared, "efs:fs-1");
  EXPECT_EQ(made.spec.mount, "/myEFSvolume");
  EXPECT_EQ(made.spec.key, "mine");
  EXPECT_TRUE(made.notes.empty());
}

TEST(Adoption, SuspendsOnlyWhatRuns) {
  const Adoption made = plan(old_stack());
  EXPECT_EQ(made.suspend.at("workers").find("AZRebalance"), std::string::npos);
  EXPECT_NE(made.suspend.at("masters").find("AZRebalance"), std::string::npos);
  EXPECT_NE(made.suspend.at("workers").find("Launch"), std::string::npos);
}

TEST(Adoption, AnInterruptedOneKeepsNamesAndWhatItSuspended) {
  Stack stack = old_stack();
  Fleet fleet{.name = "demo", .group = SecurityGroup{.id = "sg-1"}};
  fleet.group->tags = {
      {tag::kStack, "old"}, {"dtrain:scaling:1", "workers"}, {"dtrain:suspended:1", "Launch,Terminate"}};
  stack.groups[1].suspended = {"AZRebalance", "Launch", "Terminate"};
  stack.machines[2].node.name = "w0001";
  const Adoption made = plan(stack, fleet);
  EXPECT_EQ(made.workers.at("i-2"), "w0001");
  EXPECT_EQ(made.workers.at("i-1"), "w0002");
  const std::string& processes = made.suspend.at("workers");
  EXPECT_EQ(processes.find("AZRebalance"), std::string::npos);
  EXPECT_NE(processes.find("Launch"), std::string::npos);
}

TEST(Adoption, MachinesOfTheElasticTemplateMayLeaveAndAreNotOfUp) {
  Stack stack = old_stack();
  stack.machines.push_back(machine("i-3", ""));
  const Adoption made = plan(stack);
  EXPECT_EQ(made.elastic, std::set<std::string>{"i-3"});
  EXPECT_EQ(made.spec.workers, 2);
  EXPECT_EQ(made.workers.at("i-3"), "w0003");
}

TEST(Adoption, TellsOfGpusAndOfASecondKey) {
  Stack stack = old_stack();
  stack.machines[1].node.type = "p3.2xlarge";
  stack.machines[2].key = "other";
  const Adoption made = plan(stack);
  ASSERT_EQ(made.notes.size(), 2U);
  EXPECT_NE(made.notes[0].find("V100"), std::string::npos);
  EXPECT_NE(made.notes[1].find("other"), std::string::npos);
}

struct Refusal {
  const char* what;
  void (*change)(Stack&, Fleet&);
  const char* said;
};

const Refusal kRefusals[] = {
    {"it changes", [](Stack& stack, Fleet&) { stack.status = "UPDATE_IN_PROGRESS"; }, "UPDATE_IN_PROGRESS"},
    {"it failed", [](Stack& stack, Fleet&) { stack.status = "ROLLBACK_COMPLETE"; }, "ROLLBACK_COMPLETE"},
    {"no groups", [](Stack& stack, Fleet&) { stack.groups.clear(); }, "no Auto Scaling group"},
    {"no master", [](Stack& stack, Fleet&) { stack.machines.erase(stack.machines.begin()); }, "no master"},
    {"two masters", [](Stack& stack, Fleet&) { stack.machines.push_back(machine("i-9", "masters")); }, "2 masters"},
    {"a stopped master", [](Stack& stack, Fleet&) { stack.machines[0].node.state = "stopped"; }, "stopped"},
    {"no key", [](Stack& stack, Fleet&) { stack.machines[1].key.clear(); }, "without a key pair"},
    {"another CPU", [](Stack& stack, Fleet&) { stack.machines[1].node.type = "m6g.large"; }, "arm64"},
    {"another's machine", [](Stack& stack, Fleet&) { stack.machines[1].node.tags[tag::kCluster] = "b"; }, "cluster b"},
    {"another's name", [](Stack&, Fleet& fleet) { fleet.group = SecurityGroup{.id = "sg-1"}; }, "is not stack old"},
};

TEST(Adoption, RefusesWhatIsNoSuchCluster) {
  for (const Refusal& one : kRefusals) {
    Stack stack = old_stack();
    Fleet fleet{.name = "demo"};
    one.change(stack, fleet);
    try {
      plan(stack, fleet);
      ADD_FAILURE() << one.what;
    } catch (const UsageError& refusal) {
      EXPECT_NE(std::string(refusal.what()).find(one.said), std::string::npos) << one.what << ": " << refusal.what();
      EXPECT_FALSE(refusal.hint().empty()) << one.what;
    }
  }
}

}  // namespace
}  // namespace dtrain::cluster
