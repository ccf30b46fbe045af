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

// Whoever may change tags would choose words of command lines and lines of ssh's configuration.
TEST(Fleet, CallsANodeByItsInstanceWhereTheTagIsNoName) {
  const auto name_for = [](const std::string& tag) {
    return node_of(net::parse_xml("<item><instanceId>i-2</instanceId><tagSet><item><key>dtrain:node</key><value>" +
                                      tag + "</value></item></tagSet></item>",
                                  "test"))
        .name;
  };
  EXPECT_EQ(name_for("gpu-box.1"), "gpu-box.1");
  for (const char* tag : {"", "w0001 github.com", "w0001&#10;  ProxyCommand sh", "*", "w0001,github.com", "\"w\""})
    EXPECT_EQ(name_for(tag), "i-2") << tag;
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

TEST(Fleet, ReadsWhyAMachineEnded) {
  const Node node = node_of(
      net::parse_xml("<item><instanceId>i-2</instanceId><stateReason><code>Client.VolumeLimitExceeded</code>"
                     "<message>Client.VolumeLimitExceeded: Volume limit exceeded</message></stateReason></item>",
                     "test"));
  EXPECT_EQ(node.end_reason, "Client.VolumeLimitExceeded");
  EXPECT_EQ(node.end_message, "Client.VolumeLimitExceeded: Volume limit exceeded");
}

// A security group with these rules and tags, each as EC2 writes them.
SecurityGroup group_with(const std::string& rules, const std::string& tags = "") {
  return group_of(net::parse_xml(
      "<item><groupId>sg-1</groupId><ipPermissions>" + rules + "</ipPermissions><tagSet>" + tags + "</tagSet></item>",
      "test"));
}

std::string rule(const std::string& protocol, int from, int to, const std::string& ranges) {
  return "<item><ipProtocol>" + protocol + "</ipProtocol><fromPort>" + std::to_string(from) + "</fromPort><toPort>" +
         std::to_string(to) + "</toPort>" + ranges + "</item>";
}

std::string range(const std::string& block, const std::string& description = "") {
  return "<item><cidrIp>" + block + "</cidrIp>" +
         (description.empty() ? "" : "<description>" + description + "</description>") + "</item>";
}

TEST(Fleet, KnowsWhichRulesForSshAreItsOwn) {
  using Blocks = std::vector<std::string>;
  const SecurityGroup group = group_with(
      rule("tcp", 22, 22,
           "<ipRanges>" + range("10.0.0.0/8", "office") + range("203.0.113.7/32", "dtrain") + "</ipRanges>") +
      rule("tcp", 22, 8888, "<ipRanges>" + range("198.51.100.0/24") + "</ipRanges>") +
      rule("udp", 22, 22, "<ipRanges>" + range("198.51.100.1/32") + "</ipRanges>"));
  EXPECT_EQ(group.ssh_sources, (Blocks{"10.0.0.0/8", "203.0.113.7/32"}));
  EXPECT_EQ(group.own_ssh_sources, Blocks{"203.0.113.7/32"});
}

TEST(Fleet, TakesTheOnlyRuleForSshOfAnEarlierVersionAsItsOwn) {
  using Blocks = std::vector<std::string>;
  const std::string one = "<ipRanges>" + range("203.0.113.7/32") + "</ipRanges>";
  const std::string two = "<ipRanges>" + range("203.0.113.7/32") + range("10.0.0.0/8") + "</ipRanges>";
  EXPECT_EQ(group_with(rule("tcp", 22, 22, one)).own_ssh_sources, Blocks{"203.0.113.7/32"});
  EXPECT_EQ(group_with(rule("tcp", 22, 22, two)).own_ssh_sources, Blocks{});
  const std::string described = "<item><key>dtrain:rules</key><value>described</value></item>";
  EXPECT_EQ(group_with(rule("tcp", 22, 22, one), described).own_ssh_sources, Blocks{});
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
