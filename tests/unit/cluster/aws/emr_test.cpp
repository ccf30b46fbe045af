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

// The command by which nodes of EMR in this region mount the file system.
std::string mount_in(const std::string& region) {
  ClusterRequest request{.name = "demo"};
  request.spec.on = Service::emr;
  request.spec.shared = "efs:fs-1";
  const Json order = emr_order(request, {.region = region}, {.id = "sg-1"});
  const Json& script = order.at("BootstrapActions").as_array().front().at("ScriptBootstrapAction");
  return script.at("Args").as_array().back().as_string();
}

TEST(Emr, OrdersADiskWhereNoneIsChosen) {
  ClusterRequest request{.name = "demo"};
  request.spec.on = Service::emr;
  EXPECT_EQ(emr_order(request, {}, {.id = "sg-1"}).at("EbsRootVolumeSize").as_integer(), kLeastRootGbOfEmr);
}

TEST(Emr, MountsEfsByTheNameOfItsPartition) {
  EXPECT_NE(mount_in("eu-west-1").find(" fs-1.efs.eu-west-1.amazonaws.com:/ "), std::string::npos);
  EXPECT_NE(mount_in("cn-north-1").find(" fs-1.efs.cn-north-1.amazonaws.com.cn:/ "), std::string::npos);
  EXPECT_NE(mount_in("eusc-de-east-1").find(" fs-1.efs.eusc-de-east-1.amazonaws.eu:/ "), std::string::npos);
}

}  // namespace
}  // namespace dtrain::cluster
