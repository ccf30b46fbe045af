#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/plan.hpp>

namespace dtrain::cluster {
namespace {

Spec some_spec() {
  Spec spec;
  spec.workers = 2;
  spec.instance_types = {"c5.large", "m5.large"};
  return spec;
}

Account some_account() {
  Account account{.region = "us-east-1", .vpc_id = "vpc-1", .key = "mine"};
  account.ssh_source = "1.2.3.4/32";
  account.subnets = {{"subnet-a", "vpc-1", "a", true}, {"subnet-b", "vpc-1", "b", true}};
  account.types["c5.large"] = {.name = "c5.large", .vcpus = 2, .architecture = "x86_64", .zones = {"a", "b"}};
  account.types["m5.large"] = {.name = "m5.large", .vcpus = 2, .architecture = "x86_64", .zones = {"b"}};
  return account;
}

Node worker(int number, bool base = true) {
  Node node{
      .name = worker_name(number), .base = base, .instance_id = "i-" + std::to_string(number), .state = "running"};
  node.zone = "a";
  node.type = "c5.large";
  return node;
}

Fleet complete_fleet() {
  Fleet fleet{.name = "demo"};
  Node head{.name = "head", .role = Role::head, .instance_id = "i-h", .state = "running", .zone = "a"};
  head.type = "c5.large";
  fleet.nodes = {head, worker(1), worker(2)};
  fleet.group = SecurityGroup{.id = "sg-1", .ssh_sources = {"1.2.3.4/32"}, .lets_own_in = true};
  fleet.launch_template = LaunchTemplate{.id = "lt-1"};
  return fleet;
}

std::vector<std::string> steps(const Plan& plan) {
  std::vector<std::string> names;
  for (const Action& action : plan.actions) names.push_back(enum_name(kStepNames, action.step));
  return names;
}

std::vector<std::string> texts(const std::vector<Pool>& pools) {
  std::vector<std::string> all;
  for (const Pool& pool : pools) all.push_back(pool.text());
  return all;
}

using Words = std::vector<std::string>;

TEST(PlanUp, MakesEverythingWhereNothingIs) {
  const Plan plan = plan_up(some_spec(), {}, some_account(), {.name = "demo"});
  EXPECT_EQ(steps(plan), (Words{"security-group", "ssh-rule", "own-rules", "head", "launch-template", "workers"}));
  EXPECT_EQ(plan.to_start, (Words{"w0001", "w0002"}));
  EXPECT_NEAR(plan.cost.hourly, 3 * 0.085, 1e-9);
}

TEST(PlanUp, MakesARoleOnlyWhereItIsWantedAndIsNotThere) {
  Spec spec = some_spec();
  Account account = some_account();
  spec.elastic_role = "own";
  EXPECT_TRUE(plan_up(spec, {}, account, {.name = "demo"}).has(Step::role));
  account.has_role = true;
  EXPECT_FALSE(plan_up(spec, {}, account, {.name = "demo"}).has(Step::role));
  spec.elastic_role = "theirs";
  account.has_role = false;
  EXPECT_FALSE(plan_up(spec, {}, account, {.name = "demo"}).has(Step::role));
  EXPECT_THROW(plan_up(spec, {{"elastic-role", "theirs"}}, account, complete_fleet()), UsageError);
}

TEST(PlanUp, HasNothingToDoForACompleteCluster) {
  EXPECT_EQ(steps(plan_up(some_spec(), {}, some_account(), complete_fleet())), Words{});
}

TEST(PlanUp, StartsOnlyTheWorkersThatAreGone) {
  Fleet fleet = complete_fleet();
  fleet.nodes.erase(fleet.nodes.begin() + 1);
  const Plan plan = plan_up(some_spec(), {}, some_account(), fleet);
  EXPECT_EQ(steps(plan), Words{"workers"});
  EXPECT_EQ(plan.to_start, Words{"w0001"});
}

TEST(PlanUp, NamesWhatACutShortLaunchLeftAndStartsNoneForIt) {
  Fleet fleet = complete_fleet();
  for (std::size_t at : {1u, 2u}) fleet.nodes[at].name = fleet.nodes[at].instance_id;
  const Plan plan = plan_up(some_spec(), {}, some_account(), fleet);
  EXPECT_EQ(steps(plan), Words{"names"});
  EXPECT_EQ(plan.to_name, (std::map<std::string, std::string>{{"i-1", "w0001"}, {"i-2", "w0002"}}));
}

TEST(PlanUp, GivesAMachineThatAPersonStartedANumberOfItsOwn) {
  Fleet fleet = complete_fleet();
  fleet.nodes.push_back(worker(9, false));
  fleet.nodes.back().name = fleet.nodes.back().instance_id;
  fleet.nodes.back().elastic = true;  // by the cluster's launch template
  EXPECT_EQ(plan_up(some_spec(), {}, some_account(), fleet).to_name.at("i-9"), "w0003");
  fleet.nodes.back().elastic = false;  // it only carries the cluster's tag
  EXPECT_TRUE(plan_up(some_spec(), {}, some_account(), fleet).to_name.empty());
}

TEST(PlanUp, ReplacesTheHeadAlone) {
  Fleet fleet = complete_fleet();
  fleet.nodes.erase(fleet.nodes.begin());
  EXPECT_EQ(steps(plan_up(some_spec(), {}, some_account(), fleet)), Words{"head"});
}

TEST(PlanUp, TellsTheLaunchTemplateOfAnotherHead) {
  Fleet fleet = complete_fleet();
  fleet.nodes.front().private_ip = "10.0.0.9";
  EXPECT_EQ(steps(plan_up(some_spec(), {}, some_account(), fleet)), Words{"launch-template"});
  fleet.group->tags[tag::kHead] = "10.0.0.9";
  EXPECT_EQ(steps(plan_up(some_spec(), {}, some_account(), fleet)), Words{});
}

std::string refusal(const Spec& spec, const Account& account, const Fleet& fleet) {
  try {
    plan_up(spec, {}, account, fleet);
  } catch (const UsageError& error) {
    return std::string(error.what()) + "; " + error.hint();
  }
  return "";
}

TEST(PlanUp, RefusesTypesWhoseGpuDoesNotTrainAndNamesOneThatDoes) {
  Account account = some_account();
  const auto add = [&](const char* type, int gpus, const char* gpu) {
    account.types[type] = {.name = type, .vcpus = 4, .gpus = gpus, .gpu_name = gpu, .zones = {"a", "b"}};
  };
  add("g4dn.xlarge", 1, "T4");
  add("p3.8xlarge", 4, "V100");
  add("p2.16xlarge", 16, "K80");
  add("g5.xlarge", 1, "A10G");
  Spec spec = some_spec();
  const auto refused = [&](const char* type) {
    spec.instance_types = {type};
    return refusal(spec, account, {.name = "demo"});
  };
  EXPECT_EQ(
      refused("g4dn.xlarge"),
      "dtrain cannot train on the GPU of g4dn.xlarge, a T4: it needs compute capability 8.0 or newer; the "
      "cheapest type that will do is g6.xlarge: 1 x L4, $0.80 an hour. A type without a GPU, such as c6i.4xlarge, "
      "trains on its CPU");
  EXPECT_NE(refused("p3.8xlarge").find("g6.12xlarge: 4 x L4, $4.60"), std::string::npos);
  EXPECT_NE(refused("p2.16xlarge").find("g6.48xlarge: 8 x L4, $13.35"), std::string::npos);
  EXPECT_EQ(refused("g5.xlarge"), "");
  EXPECT_EQ(refused("c5.large"), "");
  spec.head_type = "g4dn.xlarge";
  EXPECT_NE(refused("c5.large"), "");
  spec.head_only = true;
  EXPECT_EQ(refused("c5.large"), "") << "it takes no part in training";
}

// Machines that run already go on.
TEST(PlanUp, LetsAClusterBeWhoseGpusDoNotTrain) {
  Account account = some_account();
  account.types["c5.large"].gpu_name = "T4";
  EXPECT_EQ(refusal(some_spec(), account, complete_fleet()), "");
  EXPECT_NE(refusal(some_spec(), account, {.name = "demo"}), "");
}

TEST(PlanUp, MovesTheSshRule) {
  Account account = some_account();
  account.ssh_source = "5.6.7.8/32";
  Fleet fleet = complete_fleet();
  fleet.group->own_ssh_sources = fleet.group->ssh_sources;
  const Plan plan = plan_up(some_spec(), {}, account, fleet);
  ASSERT_EQ(steps(plan), Words{"ssh-rule"});
  EXPECT_EQ(plan.actions.front().what, "open port 22 to 5.6.7.8/32, and close it to 1.2.3.4/32");
}

TEST(PlanUp, SaysToWhomElsePort22IsOpen) {
  const auto says_so = [](const Plan& plan) {
    const std::string said = "port 22 is also open to 5.6.7.8/32, which dtrain leaves";
    return std::ranges::find(plan.notes, said) != plan.notes.end();
  };
  Fleet fleet = complete_fleet();
  EXPECT_FALSE(says_so(plan_up(some_spec(), {}, some_account(), fleet)));
  fleet.group->ssh_sources.emplace_back("5.6.7.8/32");
  EXPECT_TRUE(says_so(plan_up(some_spec(), {}, some_account(), fleet)));
}

TEST(PlanUp, RefusesOptionsThatCannotChangeAndFollowsTheOthers) {
  Fleet fleet = complete_fleet();
  fleet.options = {{"workers", "2"}, {"shared", "efs"}};
  EXPECT_THROW(plan_up(some_spec(), {{"workers", "2"}}, some_account(), fleet), UsageError);
  EXPECT_THROW(plan_up(some_spec(), {{"workers", "2"}, {"shared", "/nfs"}}, some_account(), fleet), UsageError);
  const Plan plan = plan_up(some_spec(), {{"workers", "3"}, {"shared", "efs"}}, some_account(), fleet);
  EXPECT_EQ(steps(plan), Words{"options"});
}

TEST(PlanUp, GivesTheFileSystemAnAddressInEachZoneInUse) {
  Spec spec = some_spec();
  spec.shared = "efs";
  Account account = some_account();
  EXPECT_EQ(steps(plan_up(spec, {}, account, complete_fleet())), (Words{"file-system", "mount-target"}));
  account.file_system = FileSystem{.id = "fs-1", .mount_targets = {{.zone = "b"}}};
  EXPECT_EQ(steps(plan_up(spec, {}, account, complete_fleet())), Words{"mount-target"});
  account.file_system->mount_targets.push_back({.zone = "a"});
  EXPECT_EQ(steps(plan_up(spec, {}, account, complete_fleet())), Words{});
}

TEST(PlanUp, WarnsOfWhatCostsAndOfQuotasThatAreTooSmall) {
  Account account = some_account();
  account.quotas["standard"] = 5;
  const Plan plan = plan_up(some_spec(), {}, account, {.name = "demo"});
  ASSERT_EQ(plan.quotas.size(), 1u);
  EXPECT_EQ(plan.quotas[0].vcpus, 6);
  EXPECT_FALSE(plan.quotas[0].enough());
  const auto says = [&](const char* word) {
    return std::any_of(plan.notes.begin(), plan.notes.end(),
                       [&](const auto& note) { return note.find(word) != note.npos; });
  };
  EXPECT_TRUE(says("5 vCPUs") && says("$6.12 a day"));
}

TEST(Pools, AreTriedByZoneThenTypeThenMarket) {
  Spec spec = some_spec();
  spec.spot = SpotUse::prefer;
  EXPECT_EQ(texts(worker_pools(spec, some_account(), "b")),
            (Words{"spot c5.large in b", "spot c5.large in a", "spot m5.large in b", "on-demand c5.large in b",
                   "on-demand c5.large in a", "on-demand m5.large in b"}));
  EXPECT_EQ(texts(head_pools(spec, some_account())),
            (Words{"on-demand c5.large in a", "on-demand c5.large in b", "on-demand m5.large in b"}));
}

TEST(Pools, NameTheHighestPriceOfSpotInstancesAlone) {
  Spec spec = some_spec();
  spec.spot = SpotUse::prefer;
  spec.max_price = 0.04;
  for (const Pool& pool : worker_pools(spec, some_account(), "b")) {
    EXPECT_EQ(pool.max_price, pool.market == Market::spot ? 0.04 : 0) << pool.text();
  }
  EXPECT_EQ(head_pools(spec, some_account()).front().max_price, 0);
  spec.spot = SpotUse::only;
  EXPECT_EQ(head_pools(spec, some_account()).front().max_price, 0.04);
}

TEST(PlanUp, TakesAnotherHighestPriceForAClusterThatIsThere) {
  Spec spec = some_spec();
  spec.spot = SpotUse::prefer;
  spec.max_price = 0.04;
  EXPECT_NO_THROW(plan_up(spec, {{"max-price", "0.04"}}, some_account(), complete_fleet()));
}

TEST(CheckSpec, TakesAHighestPriceForSpotInstancesOnly) {
  Spec spec = some_spec();
  spec.max_price = 0.04;
  EXPECT_THROW(check_spec(spec), UsageError);
  spec.spot = SpotUse::only;
  EXPECT_NO_THROW(check_spec(spec));
  spec.max_price = 0.001;
  EXPECT_THROW(check_spec(spec), UsageError);
}

TEST(Launches, HaveTheSameNumberUntilTheirMachinesWereThere) {
  Fleet fleet = complete_fleet();
  EXPECT_EQ(launch_number(fleet, {"w0001"}), 0);
  fleet.nodes[1].launch = "0.abc";
  EXPECT_EQ(launch_number(fleet, {"w0001"}), 1);
  EXPECT_EQ(launch_number(fleet, {"w0002"}), 0);
  fleet.nodes[0].launch = "1.abc";
  EXPECT_EQ(launch_number(fleet, {"w0002"}), 2) << "the head's launch was complete";
  fleet.group->tags[tag::kLaunches] = "4";
  EXPECT_EQ(launch_number(fleet, {"w0002"}), 4);
}

TEST(Workers, ThatAreAddedTakeNoNameTwice) {
  Fleet fleet = complete_fleet();
  EXPECT_EQ(next_workers(fleet, 2), (Words{"w0003", "w0004"}));
  fleet.ending = {worker(7, false)};
  EXPECT_EQ(next_workers(fleet, 1), Words{"w0008"});
  fleet.group->tags[tag::kLastNode] = "9";
  EXPECT_EQ(next_workers(fleet, 1), Words{"w0010"});
}

TEST(Specs, AreRefusedWithTheOptionThatIsWrong) {
  struct Wrong {
    const char* option;
    std::function<void(Spec&)> spoil;
  };
  const Wrong table[] = {{"setting 'instance-type'", [](Spec& spec) { spec.instance_types.clear(); }},
                         {"setting 'min-workers'", [](Spec& spec) { spec.min_workers = 3; }},
                         {"setting 'ssh-from'", [](Spec& spec) { spec.ssh_from = "my-house"; }},
                         {"setting 'ssh-from'", [](Spec& spec) { spec.ssh_from = "1.2.3.400/32"; }},
                         {"setting 'shared'", [](Spec& spec) { spec.shared = "nfs"; }},
                         {"setting 'shared'", [](Spec& spec) { spec.shared = "efs:vol-1"; }},
                         {"setting 'mount'", [](Spec& spec) { spec.mount = "data"; }}};
  for (const Wrong& wrong : table) {
    Spec spec = some_spec();
    check_spec(spec);
    wrong.spoil(spec);
    try {
      check_spec(spec);
      ADD_FAILURE() << wrong.option;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(wrong.option), std::string::npos) << error.what();
    }
  }
}

TEST(ClusterNames, AreNamesOfResourcesToo) {
  for (const char* name : {"demo", "A-1"}) EXPECT_NO_THROW(check_cluster_name(name));
  for (const char* name : {"", "-x", "a b", "a/b", "a.b"}) EXPECT_THROW(check_cluster_name(name), UsageError) << name;
}

Node unnamed(const std::string& id, const std::string& time) {
  return {.name = id, .instance_id = id, .state = "pending", .launch_time = time, .launch = "1.abc"};
}

TEST(Names, OfTwoAddsAtOnceAreDifferent) {
  Fleet fleet = complete_fleet();
  fleet.nodes.push_back(unnamed("i-a", "2026-01-01T00:00:02"));
  fleet.nodes.push_back(unnamed("i-b", "2026-01-01T00:00:01"));
  using Names = std::map<std::string, std::string>;
  EXPECT_EQ(names_for(fleet, {"i-a"}, false), (Names{{"i-a", "w0004"}}));
  EXPECT_EQ(names_for(fleet, {"i-b"}, false), (Names{{"i-b", "w0003"}}));
  EXPECT_EQ(names_for(fleet, {"i-a", "i-b"}, false), (Names{{"i-a", "w0004"}, {"i-b", "w0003"}}));
}

TEST(Names, ThatConflictAreTheElders) {
  Fleet fleet = complete_fleet();
  for (const char* id : {"i-a", "i-b"}) {
    Node node = unnamed(id, "2026-01-01");
    node.name = "w0003";
    fleet.nodes.push_back(node);
  }
  EXPECT_EQ(names_for(fleet, {"i-a"}, false).size(), 0u);
  EXPECT_EQ(names_for(fleet, {"i-b"}, false).at("i-b"), "w0004");
  EXPECT_EQ(names_for(fleet, {"i-a"}, true).at("i-a"), "w0004");  // the other command may have ended
  EXPECT_EQ(duplicates(fleet), std::set<std::string>{"i-b"});
  const Plan plan = plan_up(some_spec(), {}, some_account(), fleet);
  EXPECT_EQ(plan.to_name, (std::map<std::string, std::string>{{"i-b", "w0004"}}));
}

TEST(PlanUp, SaysWhichNodesAreStoppedAndHowTheyStart) {
  Fleet fleet = complete_fleet();
  EXPECT_EQ(stopped_note(fleet), std::nullopt);
  fleet.nodes.front().state = "stopped";
  EXPECT_EQ(stopped_note(fleet), "the head (i-h) is stopped: dtrain cluster start demo starts it again");
  fleet.nodes.back().state = "stopping";
  EXPECT_EQ(stopped_note(fleet),
            "the head (i-h), w0002 (i-2) are stopped: dtrain cluster start demo starts them again");
}

TEST(PlanUp, SaysWhichBaseWorkersAreBeyondTheWantedOnes) {
  Fleet fleet = complete_fleet();
  EXPECT_EQ(surplus_note(fleet, 2), std::nullopt);
  Spec spec = some_spec();
  spec.workers = 1;
  const char* const one =
      "w0002 is more than the 1 worker wanted; it runs on and costs money; dtrain cluster remove demo w0002 ends it";
  EXPECT_EQ(std::ranges::count(plan_up(spec, {}, some_account(), fleet).notes, one), 1);
  fleet.nodes.insert(fleet.nodes.end(), {worker(3), worker(4, false)});
  EXPECT_EQ(surplus_note(fleet, 1),
            "w0002, w0003 are more than the 1 worker wanted; they run on and cost money; dtrain cluster remove demo "
            "w0003 ends the last of them");
  fleet.nodes[1].weight = 2;  // w0001 counts as two
  EXPECT_EQ(surplus_base_workers(fleet, 3), std::vector<const Node*>{&fleet.nodes[3]});
  fleet.nodes[3].elastic_status = "REMOVAL_QUEUED";
  EXPECT_EQ(counted_base(fleet), 3);
  EXPECT_EQ(counted_base(fleet, "i-1"), 1);
  EXPECT_TRUE(surplus_base_workers(fleet, 3).empty()) << "it is on its way out";
}

TEST(PlanUp, LeavesABaseWorkerWhoseNameANewOneWouldGet) {
  Fleet fleet = complete_fleet();
  fleet.nodes[2] = worker(5);
  EXPECT_EQ(surplus_base_workers(fleet, 1), std::vector<const Node*>{&fleet.nodes[2]});
  fleet.nodes[2].weight = 2;
  EXPECT_TRUE(surplus_base_workers(fleet, 2).empty()) << "w0005 counts for more than there is too much";
}

TEST(Cost, OfAnUnknownTypeIsNotNothing) {
  EXPECT_EQ(cost_text(cost_of(std::vector<std::string>{"c5.large", "c5.large"}, built_in_prices())), "$0.17");
  EXPECT_EQ(cost_text(cost_of(std::vector<std::string>{"c5.large", "p9.huge"}, built_in_prices())),
            "$0.09 and the unknown price of p9.huge");
  EXPECT_EQ(cost_text(cost_of(std::vector<std::string>{"p9.huge", "p9.huge"}, built_in_prices())),
            "an unknown price (p9.huge)");
  for (const std::string& type : Spec().instance_types) EXPECT_TRUE(built_in_prices().of(type)) << type;
}

}  // namespace
}  // namespace dtrain::cluster
