#include <gtest/gtest.h>

#include <dtrain/cluster/emr.hpp>

namespace dtrain::cluster {
namespace {

EmrInstance at(const std::string& address, const std::string& state = "RUNNING") {
  return {.instance_id = "i-" + address, .state = state, .private_ip = address};
}

std::vector<std::string> addresses(const std::vector<EmrInstance>& instances) {
  std::vector<std::string> found;
  for (const EmrInstance& one : instances) found.push_back(one.private_ip);
  return found;
}

TEST(Emr, OrdersAddressesAsNumbers) {
  EXPECT_EQ(addresses(in_address_order({at("10.0.10.2"), at("10.0.9.100"), at("10.0.9.20"), at("9.255.255.255")})),
            (std::vector<std::string>{"9.255.255.255", "10.0.9.20", "10.0.9.100", "10.0.10.2"}));
}

TEST(Emr, CountsRunningInstancesOnce) {
  EXPECT_EQ(addresses(in_address_order({at("10.0.0.2"), at("10.0.0.1", "TERMINATED"), at("10.0.0.2"), at("")})),
            (std::vector<std::string>{"10.0.0.2"}));
}

}  // namespace
}  // namespace dtrain::cluster
