#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/plan.hpp>

namespace dtrain::cluster {
namespace {

using Names = std::vector<std::string>;

TEST(Weights, ComeBackFromTheirText) {
  Spec spec;
  set_worker_types(spec, "c5.large,c5.xlarge:2,c5.2xlarge:4,m5.large:1");
  EXPECT_EQ(spec.instance_types, (Names{"c5.large", "c5.xlarge", "c5.2xlarge", "m5.large"}));
  EXPECT_EQ(weight_of(spec, "c5.2xlarge"), 4);
  EXPECT_EQ(weight_of(spec, "c5.large"), 1);
  EXPECT_EQ(worker_types_text(spec), "c5.large,c5.xlarge:2,c5.2xlarge:4,m5.large");
  set_worker_types(spec, "c5.large,c5.xlarge");
  EXPECT_TRUE(spec.weights.empty());
  for (const char* text : {"a:", "a:0", "a:-1", "a:x", "a:1:2", "a:101"}) {
    EXPECT_THROW(set_worker_types(spec, text), UsageError) << text;
  }
}

TEST(Weights, MachinesAreRoundedUp) {
  EXPECT_EQ(machines_for(4, 2), 2);
  EXPECT_EQ(machines_for(5, 2), 3);
  EXPECT_EQ(machines_for(0, 2), 0);
  EXPECT_EQ(machines_for(3, 1), 3);
}

Node base_worker(const std::string& name, int weight) {
  return {.name = name, .base = true, .instance_id = "i-" + name, .state = "running", .weight = weight};
}

TEST(Weights, AMachineThatCountsAsSeveralStandsForNamesThatNoneHas) {
  Spec spec;
  spec.workers = 4;
  Fleet fleet{.name = "demo"};
  fleet.nodes = {base_worker("w0001", 2)};
  EXPECT_EQ(missing_base_workers(spec, fleet), (Names{"w0002", "w0003"}));
  fleet.nodes.push_back(base_worker("w0002", 2));
  EXPECT_TRUE(missing_base_workers(spec, fleet).empty());
  EXPECT_EQ(fleet.counted_workers(), 4);
  fleet.nodes[1] = base_worker("w0002", 4);
  EXPECT_TRUE(missing_base_workers(spec, fleet).empty());
  fleet.nodes = {base_worker("w0009", 2)};
  fleet.nodes[0].name = fleet.nodes[0].instance_id;  // an interrupted `up` left it without a name
  EXPECT_EQ(missing_base_workers(spec, fleet), (Names{"w0002", "w0003"}));
}

TEST(Weights, PoolsKnowWhatTheirMachinesCountFor) {
  Spec spec;
  set_worker_types(spec, "c5.large,c5.xlarge:2");
  Account account;
  account.subnets = {{"subnet-a", "vpc", "a", true}};
  std::vector<int> weights;
  for (const Pool& pool : worker_pools(spec, account, "a")) weights.push_back(pool.weight);
  EXPECT_EQ(weights, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace dtrain::cluster
