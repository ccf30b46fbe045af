#include "plan/subnet_choice.hpp"

#include <gtest/gtest.h>

namespace dtrain::cluster {
namespace {

Subnet subnet_in(const std::string& zone, const std::string& id, bool gives_public_ip, std::optional<int> free) {
  return {id, "vpc-1", zone, gives_public_ip, free, {}};
}

Spec spec_of_four() {
  Spec spec;
  spec.workers = 4, spec.instance_types = {"c5.large"};
  return spec;
}

std::vector<std::string> ids_of(const std::vector<Subnet>& subnets) {
  std::vector<std::string> ids;
  for (const Subnet& one : subnets) ids.push_back(one.id);
  return ids;
}

using Words = std::vector<std::string>;

TEST(SubnetChoice, TakesTheFirstOfEachZoneThatGivesPublicAddresses) {
  Spec spec = spec_of_four();
  const std::vector<Subnet> all{subnet_in("b", "s-4", false, 9), subnet_in("a", "s-3", true, 4000),
                                subnet_in("a", "s-2", true, 9), subnet_in("a", "s-1", false, 4000)};
  EXPECT_TRUE(SubnetChoice(spec, all).is_open());
  EXPECT_EQ(ids_of(SubnetChoice(spec, all).for_nodes_of({})), (Words{"s-2", "s-4"}));
  spec.private_addresses = true;
  EXPECT_EQ(ids_of(SubnetChoice(spec, all).for_nodes_of({})), (Words{"s-1", "s-4"}));
  EXPECT_FALSE(SubnetChoice(spec, {all[0], all[1]}).is_open());
}

TEST(SubnetChoice, PassesOverAFullSubnet) {
  const Spec spec = spec_of_four();
  const auto chosen = [&](std::optional<int> first, std::optional<int> second) {
    const SubnetChoice choice(spec, {subnet_in("a", "s-1", true, first), subnet_in("a", "s-2", true, second)});
    return ids_of(choice.for_nodes_of({})).front();
  };
  EXPECT_EQ(chosen(0, 4000), "s-2");
  EXPECT_EQ(chosen(4, 5), "s-2") << "four workers and the head";
  EXPECT_EQ(chosen(5, 4000), "s-1");
  EXPECT_EQ(chosen(2, 3), "s-2");
  EXPECT_EQ(chosen(3, 3), "s-1");
  EXPECT_EQ(chosen(std::nullopt, std::nullopt), "s-1");
}

TEST(SubnetChoice, StaysWhereTheClusterHasMachines) {
  const Spec spec = spec_of_four();
  Fleet fleet{.name = "demo"};
  for (int number = 1; number <= 4; ++number) {
    fleet.nodes.push_back({.name = worker_name(number), .instance_id = "i-" + std::to_string(number)});
    fleet.nodes.back().subnet_id = "s-2";
  }
  const auto chosen = [&](int first, int second) {
    const SubnetChoice choice(spec, {subnet_in("a", "s-1", true, first), subnet_in("a", "s-2", true, second)});
    return ids_of(choice.for_nodes_of(fleet)).front();
  };
  EXPECT_EQ(chosen(4000, 1), "s-2") << "the head alone is missing";
  EXPECT_EQ(chosen(4000, 0), "s-1");
}

TEST(SubnetChoice, StartsALostHeadWhereItsAddressIs) {
  const Spec spec = spec_of_four();
  Subnet first = subnet_in("a", "s-1", true, 4000), second = subnet_in("a", "s-2", true, 0);
  first.block = "10.0.0.0/20", second.block = "10.0.16.0/20";
  Fleet fleet{.name = "demo", .group = SecurityGroup{}};
  fleet.group->tags[tag::kHead] = "10.0.17.9";
  EXPECT_EQ(ids_of(SubnetChoice(spec, {first, second}).for_nodes_of(fleet)).front(), "s-2");
  fleet.nodes.push_back({.role = Role::head, .instance_id = "i-1"});
  EXPECT_EQ(ids_of(SubnetChoice(spec, {first, second}).for_nodes_of(fleet)).front(), "s-1") << "it is there";
}

}  // namespace
}  // namespace dtrain::cluster
