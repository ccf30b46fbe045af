#include "plan/ssh_rule.hpp"

#include <gtest/gtest.h>

namespace dtrain::cluster {
namespace {

using Blocks = std::vector<std::string>;

TEST(SshRule, KnowsABlockWhateverItsHostBits) {
  EXPECT_TRUE(is_same_block("203.0.113.7/24", "203.0.113.0/24"));
  EXPECT_TRUE(is_same_block("2001:db8::7/64", "2001:DB8:0:0::/64"));
  EXPECT_TRUE(is_same_block("0.0.0.0/0", "1.2.3.4/0"));
  EXPECT_FALSE(is_same_block("203.0.113.0/24", "203.0.113.0/25"));
  EXPECT_FALSE(is_same_block("203.0.113.7/32", "203.0.113.8/32"));
  EXPECT_FALSE(is_same_block("pl-123", "0.0.0.0/0"));
}

TEST(SshRule, ClosesOnlyWhatDtrainOpened) {
  const SecurityGroup group{.ssh_sources = {"10.0.0.0/8", "203.0.113.7/32"}, .own_ssh_sources = {"203.0.113.7/32"}};
  const SshChange moved = ssh_change(group, "198.51.100.1/32");
  EXPECT_TRUE(moved.opens);
  EXPECT_EQ(moved.closes, Blocks{"203.0.113.7/32"});
  EXPECT_EQ(ssh_change_text(moved, "198.51.100.1/32"),
            "open port 22 to 198.51.100.1/32, and close it to 203.0.113.7/32");
  EXPECT_FALSE(ssh_change(group, "203.0.113.7/32").any());
}

TEST(SshRule, OpensNothingThatIsOpen) {
  const SecurityGroup group{.ssh_sources = {"10.0.0.0/8", "203.0.113.7/32"}, .own_ssh_sources = {"203.0.113.7/32"}};
  const SshChange change = ssh_change(group, "10.1.2.3/8");
  EXPECT_FALSE(change.opens);
  EXPECT_EQ(ssh_change_text(change, "10.1.2.3/8"), "close port 22 to 203.0.113.7/32");
}

TEST(SshRule, NamesTheBlocksThatOthersOpened) {
  const SecurityGroup group{.ssh_sources = {"10.0.0.0/8", "192.0.2.0/24", "203.0.113.7/32"},
                            .own_ssh_sources = {"203.0.113.7/32"}};
  EXPECT_EQ(other_sources(group, "198.51.100.1/32"), (Blocks{"10.0.0.0/8", "192.0.2.0/24"}));
  EXPECT_EQ(other_sources(group, "10.1.2.3/8"), Blocks{"192.0.2.0/24"});
  EXPECT_EQ(other_sources({}, "203.0.113.7/32"), Blocks{});
}

TEST(SshRule, OpensToTheFirstSource) {
  const SshChange change = ssh_change({}, "203.0.113.7/32");
  EXPECT_EQ(ssh_change_text(change, "203.0.113.7/32"), "open port 22 to 203.0.113.7/32");
}

}  // namespace
}  // namespace dtrain::cluster
