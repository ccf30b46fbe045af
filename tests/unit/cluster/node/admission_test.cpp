#include <gtest/gtest.h>

#include <dtrain/cluster/admission.hpp>

namespace dtrain::cluster {
namespace {

const Identity kHead{"111122223333", "us-east-1", "i-head", "10.0.0.1", "us-east-1a", "c5.large"};
const Identity kNode{"111122223333", "us-east-1", "i-node", "10.0.0.2", "us-east-1a", "c5.large"};

TEST(Admission, IsForThoseWhoWereAnnounced) {
  EXPECT_TRUE(admit(kNode, "10.0.0.2", kHead, {{"i-node", "10.0.0.2"}}).admitted);
  EXPECT_FALSE(admit(kNode, "10.0.0.2", kHead, {}).admitted);
  EXPECT_FALSE(admit(kNode, "10.0.0.2", kHead, {{"i-other", "10.0.0.2"}}).admitted);
  EXPECT_TRUE(admit(kHead, "10.0.0.1", kHead, {}).admitted);
}

TEST(Admission, IsNotForWhoShowsTheDocumentOfAnother) {
  EXPECT_FALSE(admit(kNode, "10.0.0.3", kHead, {{"i-node", "10.0.0.2"}}).admitted);
  Identity moved = kNode;
  moved.address = "10.0.0.3";
  EXPECT_FALSE(admit(moved, "10.0.0.3", kHead, {{"i-node", "10.0.0.2"}}).admitted);
  EXPECT_FALSE(admit(kHead, "10.0.0.3", kHead, {}).admitted);
}

TEST(Admission, StaysInTheAccountAndRegion) {
  Identity foreign = kNode;
  foreign.account = "999999999999";
  EXPECT_FALSE(admit(foreign, "10.0.0.2", kHead, {{"i-node", "10.0.0.2"}}).admitted);
  foreign = kNode;
  foreign.region = "eu-west-1";
  EXPECT_FALSE(admit(foreign, "10.0.0.2", kHead, {{"i-node", "10.0.0.2"}}).admitted);
}

TEST(Admission, MakesAnotherSecretForEachCluster) {
  const std::string one = new_admission_secret();
  EXPECT_EQ(one.size(), 64u);
  EXPECT_NE(one, new_admission_secret());
  EXPECT_EQ(failure_proof(one), failure_proof(one));
  EXPECT_NE(failure_proof(one), one);
}

TEST(Admission, IsNotForWhoClaimsWhatNoInstanceIsCalled) {
  Identity wrong = kNode;
  wrong.instance_id = "i-node\033[2J";
  EXPECT_FALSE(admit(wrong, "10.0.0.2", kHead, {{wrong.instance_id, "10.0.0.2"}}).admitted);
  wrong = kNode;
  wrong.address = "010.0.0.2";
  EXPECT_FALSE(admit(wrong, "010.0.0.2", kHead, {{"i-node", "010.0.0.2"}}).admitted);
}

TEST(Admission, ReadsTheDocumentAsEc2WritesIt) {
  const Identity found = identity_from(R"({"accountId": "111122223333", "region": "us-east-1", "instanceId": "i-node",
      "privateIp": "10.0.0.2", "availabilityZone": "us-east-1a", "instanceType": "c5.large", "kernelId": null})");
  EXPECT_EQ(found.instance_id, "i-node");
  EXPECT_EQ(found.address, "10.0.0.2");
}

}  // namespace
}  // namespace dtrain::cluster
