#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"
#include "ssh/config.hpp"
#include "ssh/user.hpp"

namespace dtrain::net::ssh {
namespace {

class SshConfig : public testing::Test {
 protected:
  HostConfig read(const std::string& text, const std::string& alias) {
    std::ofstream(folder_ / "config") << text;
    return read_config(folder_ / "config", alias);
  }
  TemporaryFolder folder_;
};

TEST_F(SshConfig, GivesTheFirstValueOfEachKeywordThatAppliesAndAllIdentities) {
  const HostConfig config = read(
      "# comment\nHost gpu* !gpu9\n  User=alice\r\n\tPort 2222\n  IdentityFile \"/keys/a b\"\n"
      "Host *\n  User bob\n  port 22\n  IdentityFile /keys/c\n  ProxyJump hop:99\n",
      "gpu1");
  EXPECT_EQ(config.user, "alice");
  EXPECT_EQ(config.port, 2222);
  EXPECT_EQ(config.identities, (std::vector<Path>{"/keys/a b", "/keys/c"}));
  EXPECT_EQ(config.jump, "hop:99");
}

TEST_F(SshConfig, LeavesOutAHostThatANegatedPatternNames) {
  const std::string text = "Host gpu* !gpu9\n User alice\nHost *\n User bob\n";
  EXPECT_EQ(read(text, "gpu8").user, "alice");
  EXPECT_EQ(read(text, "gpu9").user, "bob");
}

TEST_F(SshConfig, SkipsMatchBlocksButThoseForAll) {
  EXPECT_EQ(read("Match host h\n User alice\nMatch all\n User bob\n", "h").user, "bob");
}

TEST_F(SshConfig, ReadsIncludedFilesWhereTheyAreNamed) {
  std::filesystem::create_directories(folder_ / "d");
  write_file_atomic(folder_ / "d" / "1", "Host other\n User x\nHost h\n User inner\n");
  write_file_atomic(folder_ / "d" / "2", "Host *\n Port 7\n");
  const HostConfig config = read("Include d/*\nHost h\n User outer\n HostName real\n", "h");
  EXPECT_EQ(config.user, "inner");
  EXPECT_EQ(config.port, 7);
  EXPECT_EQ(config.host_name, "real");
}

TEST_F(SshConfig, EndsACircleOfIncludes) {
  EXPECT_THROW(read("Include " + (folder_ / "config").string() + "\n", "h"), UsageError);
}

TEST_F(SshConfig, FillsInWhatPerCentSignsStandFor) {
  const HostConfig config = read("HostName %h.example\nUser u\nIdentityFile ~/k\nIdentityFile /%h/%r/%%\n", "h");
  EXPECT_EQ(config.host_name, "h.example");
  EXPECT_EQ(config.identities[0], local_user().home / "k");
  EXPECT_EQ(config.identities[1], "/h.example/u/%");
}

TEST_F(SshConfig, KnowsProxyJumpNoneAndAMissingFile) {
  EXPECT_EQ(read("Host h\n ProxyJump none\nHost *\n ProxyJump j\n", "h").jump, "");
  EXPECT_EQ(read_config(folder_ / "none", "h").port, 0);
  EXPECT_EQ(read_config({}, "h").port, 0);
}

TEST_F(SshConfig, NamesTheLineOfAValueThatCannotBe) {
  try {
    read("\nHost h\n Port many\n", "h");
    FAIL() << "it took a port that is no number";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("config:3"), std::string::npos) << error.what();
  }
}

TEST_F(SshConfig, TakesNoiseWithoutHarm) {
  const std::vector<std::string> pieces = {"Host",  " ",        "\n",      "\"",   "=",
                                           "*",     "!",        "%",       "%h",   "Port",
                                           "22",    "User",     "Include", "\xff", std::string(1, '\0'),
                                           "Match", "HostName", "[",       "~/"};
  std::mt19937 random(7);
  for (int round = 0; round < 150; ++round) {
    std::string text;
    for (int i = 0; i < 20; ++i) text += pieces[random() % pieces.size()];
    try {
      read(text, "h");
    } catch (const UsageError&) {
    }
  }
}

}  // namespace
}  // namespace dtrain::net::ssh
