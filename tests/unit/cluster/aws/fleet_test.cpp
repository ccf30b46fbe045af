#include <gtest/gtest.h>

#include <dtrain/cluster/fleet.hpp>

namespace dtrain::cluster {
namespace {

constexpr const char* kInstance =
    R"(<item><instanceId>i-1</instanceId><instanceState><code>16</code><name>running</name>
</instanceState><privateIpAddress>10.0.0.5</privateIpAddress><ipAddress>3.4.5.6</ipAddress><placement>
<availabilityZone>us-east-1b</availabilityZone></placement><instanceType>c5.large</instanceType>
<instanceLifecycle>spot</instanceLifecycle><tagSet><item><key>dtrain:cluster</key><value>demo</value></item>
<item><key>dtrain:role</key><value>worker</value></item><item><key>dtrain:node</key><value>w0003</value></item>
<item><key>demo-aws-dl-cfn-elastic-worker</key><value/></item>
<item><key>elastic_worker_status</key><value>ADDED</value></item></tagSet></item>)";

TEST(Fleet, ReadsANodeFromItsTags) {
  const Node node = node_of(net::parse_xml(kInstance, "test"));
  EXPECT_EQ(node.name, "w0003");
  EXPECT_EQ(node.role, Role::worker);
  EXPECT_TRUE(node.elastic && !node.base && node.alive());
  EXPECT_EQ(node.private_ip, "10.0.0.5");
  EXPECT_EQ(node.zone, "us-east-1b");
  EXPECT_EQ(node.market, Market::spot);
  EXPECT_EQ(node.elastic_status, "ADDED");
}

TEST(Fleet, ReadsWhenAMachineEnded) {
  const auto ended_at = [](const std::string& reason) {
    return node_of(net::parse_xml("<item><instanceId>i-2</instanceId><reason>" + reason + "</reason></item>", "test"))
        .ended_at;
  };
  EXPECT_EQ(ended_at("User initiated (2026-01-31 12:00:00 GMT)"), "2026-01-31 12:00:00 GMT");
  EXPECT_EQ(ended_at("Server.SpotInstanceTermination"), "");
  EXPECT_EQ(ended_at(")("), "");
}

TEST(Fleet, NamesANodeWithoutANameByItsInstance) {
  const Node node = node_of(net::parse_xml("<item><instanceId>i-2</instanceId></item>", "test"));
  EXPECT_EQ(node.name, "i-2");
  EXPECT_FALSE(node.named());
}

TEST(Fleet, KeepsOptionsOfAnyLengthInTags) {
  std::string long_text(700, 'x');
  long_text.back() = 'e';
  const std::map<std::string, std::string> options{{"workers", "2"}, {"prepare", long_text}};
  const Tags tags = option_tags(options);
  for (const auto& [key, value] : tags) EXPECT_LE(value.size(), 256u) << key;
  EXPECT_EQ(options_of(tags), options);
}

TEST(Fleet, CutsOptionsBetweenCharacters) {
  std::string text = "x";
  while (text.size() < 1000) text += "ä€𝄞";
  const Tags tags = option_tags({{"prepare", text}});
  for (const auto& [key, value] : tags) {
    EXPECT_LE(value.size(), 256u) << key;
    EXPECT_NE(static_cast<unsigned char>(value.front()) & 0xC0, 0x80) << key;
  }
  EXPECT_EQ(options_of(tags).at("prepare"), text);
  const std::string broken(600, '\x80');
  EXPECT_EQ(options_of(option_tags({{"prepare", broken}})).at("prepare"), broken);
}

TEST(Fleet, IsCompletedByWhatIsKnownAndNotShownYet) {
  Fleet known{.name = "demo", .group = SecurityGroup{.id = "sg-1"}};
  known.nodes = {{.name = "head", .role = Role::head, .instance_id = "i-1"}, {.name = "w0001", .instance_id = "i-2"}};
  Fleet shown{.name = "demo"};
  shown.ending = {{.name = "w0001", .instance_id = "i-2"}};
  const Fleet fleet = with_known(shown, known);
  EXPECT_EQ(fleet.group->id, "sg-1");
  ASSERT_EQ(fleet.nodes.size(), 1u);
  EXPECT_EQ(fleet.head()->instance_id, "i-1");
}

TEST(Fleet, CountsWorkersFromOne) {
  EXPECT_EQ(worker_name(3), "w0003");
  EXPECT_EQ(worker_number("w0003"), 3);
  EXPECT_EQ(worker_number("head"), std::nullopt);
  EXPECT_EQ(worker_number("w0"), std::nullopt);
}

}  // namespace
}  // namespace dtrain::cluster
