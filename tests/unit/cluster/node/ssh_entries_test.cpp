#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/cluster_head.hpp>
#include <dtrain/cluster/ssh_entries.hpp>

namespace dtrain::cluster {
namespace {

constexpr const char* kLine = "Include /h/.dtrain/clusters/*/ssh_config";

cluster::Fleet some_fleet() {
  cluster::Fleet fleet{.name = "demo"};
  fleet.nodes = {{.name = "head",
                  .role = cluster::Role::head,
                  .instance_id = "i-01",
                  .private_ip = "10.0.0.1",
                  .public_ip = "1.2.3.4"},
                 {.name = "w0001", .instance_id = "i-02", .private_ip = "10.0.0.2"},
                 {.name = "w0002"}};
  return fleet;
}

TEST(SshEntries, GoThroughTheHeadToNodesWithoutAPublicAddress) {
  EXPECT_EQ(
      ssh_entries(some_fleet(), "ubuntu", "/h/a b/k"),
      "# Nodes of cluster demo, written by `dtrain cluster ssh --write-config`.\n"
      "Host demo.head\n  HostName 1.2.3.4\n  User ubuntu\n  HostKeyAlias i-01\n  UserKnownHostsFile \"/h/a b/k\"\n"
      "  StrictHostKeyChecking accept-new\n  ForwardAgent no\n"
      "Host demo.w0001\n  HostName 10.0.0.2\n  User ubuntu\n  HostKeyAlias i-02\n  UserKnownHostsFile \"/h/a b/k\"\n"
      "  StrictHostKeyChecking accept-new\n  ForwardAgent no\n  ProxyJump demo.head\n");
  EXPECT_EQ(ssh_names(some_fleet()), (std::vector<std::string>{"demo.head", "demo.w0001"}));
}

TEST(SshEntries, AreForOneHostEach) {
  EXPECT_NE(ssh_blocks("lab", {{"lab.alice@h1", {{"ProxyCommand", "ssh -W \"%h\":%p gate # mine"}}}}), "");
  for (const char* name : {"", "lab.a github.com", "lab.a\tb", "lab.a\n  ProxyCommand sh", "lab.*", "lab.?", "!lab.a",
                           "\"lab.a", "lab.a#", "lab.a,b", "lab.\x7f"})
    EXPECT_THROW(ssh_blocks("lab", {{name, {}}}), UsageError) << name;
  for (const char* value : {"10.0.0.1\n  ProxyCommand sh", "a\rb", "\x1b[2J"})
    EXPECT_THROW(ssh_blocks("lab", {{"lab.a", {{"HostName", value}}}}), UsageError) << value;
}

// A head that takes the place of a lost one has its private address, and another key.
TEST(SshTargets, AreKnownByTheInstance) {
  const cluster::Fleet fleet = some_fleet();
  const net::SshTarget head = ssh_target(fleet.nodes[0], "ubuntu");
  EXPECT_EQ(head, (net::SshTarget{.host = "1.2.3.4", .user = "ubuntu", .host_key_alias = "i-01"}));
  EXPECT_EQ(ssh_target(fleet.nodes[1], "ubuntu").host_key_alias, "i-02");
}

TEST(SshInclude, StandsFirstAndOnce) {
  const std::string config = "Host a\n  User b\n";
  EXPECT_EQ(with_include(config, kLine), std::string(kLine) + "\n" + config);
  EXPECT_EQ(with_include(with_include(config, kLine), kLine), with_include(config, kLine));
  const std::string moved = config + "  " + kLine + "\r\n";
  EXPECT_EQ(with_include(moved, kLine), moved);
}

TEST(SshInclude, LeavesEveryOtherByteAsItWas) {
  for (const char* config : {"", "\n", "Host a\n  User b", "Host a\r\n\r\n# Include x\r\n", "Include /h/other\n"}) {
    EXPECT_EQ(without_include(with_include(config, kLine), kLine), config);
    EXPECT_EQ(without_include(config, kLine), config);
  }
}

}  // namespace
}  // namespace dtrain::cluster
