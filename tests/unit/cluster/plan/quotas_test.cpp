// Which quota counts the machines of a plan.
#include <gtest/gtest.h>

#include <dtrain/cluster/plan.hpp>

namespace dtrain::cluster::quotas {
namespace {

using Vcpus = std::map<std::string, int>;

Account some_account() {
  Account account{.region = "us-east-1", .vpc_id = "vpc-1", .key = "mine"};
  account.ssh_source = "1.2.3.4/32";
  account.subnets = {{"subnet-a", "vpc-1", "a", true}};
  for (const auto& [name, vcpus] : Vcpus{{"c5.large", 2}, {"x2idn.16xlarge", 64}}) {
    account.types[name] = {.name = name, .vcpus = vcpus, .architecture = "x86_64", .zones = {"a"}};
  }
  return account;
}

Plan plan_of(SpotUse spot, const std::string& type, const Account& account) {
  Spec spec;
  spec.workers = 2, spec.spot = spot, spec.instance_types = {type};
  return plan_up(spec, {}, account, {.name = "demo"});
}

Vcpus vcpus(const Plan& plan) {
  Vcpus all;
  for (const QuotaNeed& one : plan.quotas) all[one.quota] = one.vcpus;
  return all;
}

TEST(PlanUp, CountsSpotMachinesByTheQuotasOfSpotMachines) {
  Account account = some_account();
  EXPECT_EQ(vcpus(plan_of(SpotUse::off, "c5.large", account)), (Vcpus{{"standard", 6}}));
  EXPECT_EQ(vcpus(plan_of(SpotUse::only, "c5.large", account)), (Vcpus{{"spot-standard", 6}}));
  EXPECT_EQ(vcpus(plan_of(SpotUse::prefer, "c5.large", account)), (Vcpus{{"spot-standard", 4}, {"standard", 2}}))
      << "the head is on demand";
  account.quotas = {{"standard", 0}, {"spot-standard", 6}};
  EXPECT_TRUE(plan_of(SpotUse::only, "c5.large", account).quotas.at(0).enough());
  account.quotas = {{"standard", 6}, {"spot-standard", 5}};
  EXPECT_FALSE(plan_of(SpotUse::only, "c5.large", account).quotas.at(0).enough());
}

TEST(PlanUp, JudgesNoSpotMachinesWhoseQuotaIsUnknown) {
  EXPECT_EQ(quota_of("g5.xlarge", Market::spot), "spot-gpu-g");
  EXPECT_EQ(quota_of("p4d.24xlarge", Market::spot), "spot-gpu-p");
  EXPECT_EQ(quota_of("p5en.48xlarge", Market::spot), "spot-gpu-p5");
  EXPECT_EQ(quota_of("p6-b200.48xlarge", Market::on_demand), "gpu-p");
  EXPECT_EQ(quota_of("p6-b200.48xlarge", Market::spot), "");
  Account account = some_account();
  account.quotas["standard"] = 5;
  EXPECT_EQ(vcpus(plan_of(SpotUse::only, "x2idn.16xlarge", account)), Vcpus{});
}

}  // namespace
}  // namespace dtrain::cluster::quotas
