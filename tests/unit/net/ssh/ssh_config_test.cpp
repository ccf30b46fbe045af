#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <fstream>
#include <random>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/text.hpp>

#include "common/temporary_folder.hpp"
#include "ssh/config.hpp"
#include "ssh/user.hpp"

namespace dtrain::net::ssh {
namespace {

class SshConfig : public testing::Test {
 protected:
  HostConfig read(const std::string& text, const std::string& alias) {
    std::ofstream(folder_ / "config") << text;
    return read_config({folder_ / "config"}, {.host = alias});
  }
  // What an ssh client makes of it.
  HostConfig resolve(const std::string& text, const SshTarget& target) {
    write_file_atomic(folder_ / "config", text);
    SshOptions options;
    options.config = folder_ / "config";
    return effective_config(target, options, {Clock::now() + std::chrono::seconds(60), {}});
  }
  Path write(const std::string& text) {
    write_file_atomic(folder_ / "config", text);
    return folder_ / "config";
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

TEST_F(SshConfig, RefusesMatchBlocksButThoseForAllWithoutAClient) {
  EXPECT_THROW(read("Match host h\n User alice\n", "h"), UsageError);
  EXPECT_EQ(read("Host other\n User alice\nMatch all\n User bob\n", "h").user, "bob");
}

TEST_F(SshConfig, FollowsWhatDecidesOnKeysAndOnTheWay) {
  for (const bool with_client : {false, true}) {
    SCOPED_TRACE(with_client);
    const std::string text =
        "Host gpu*\n HostName real.%h\n UserKnownHostsFile ~/one /two\n GlobalKnownHostsFile /three\n"
        " StrictHostKeyChecking accept-new\n HostKeyAlias farm\n CertificateFile ~/c-cert.pub\n"
        " IdentityFile /keys/%r\n IdentityAgent none\n ProxyCommand nc -x proxy %h %p\n Ciphers aes256-ctr\n"
        " AddressFamily inet6\n";
    const HostConfig config =
        with_client ? resolve(text, {"gpu1", "ann", 77}) : read_config({write(text)}, {"gpu1", "ann", 77});
    EXPECT_EQ(config.host_name, "real.gpu1");
    EXPECT_EQ(config.user_known_hosts, (std::vector<Path>{local_user().home / "one", "/two"}));
    EXPECT_EQ(config.global_known_hosts, (std::vector<Path>{"/three"}));
    EXPECT_EQ(config.strict, StrictKeys::accept_new);
    EXPECT_EQ(config.host_key_alias, "farm");
    EXPECT_EQ(config.certificates, (std::vector<Path>{local_user().home / "c-cert.pub"}));
    EXPECT_EQ(config.identities, (std::vector<Path>{"/keys/ann"}));
    EXPECT_EQ(config.agent_socket, "");
    EXPECT_EQ(config.proxy_command, "nc -x proxy real.gpu1 77");
    EXPECT_EQ(config.algorithms, (std::map<std::string, std::string>{{"ciphers", "aes256-ctr"}}));
    EXPECT_EQ(config.family, AF_INET6);
  }
}

TEST_F(SshConfig, SaysNothingThatTheConfigurationDoesNotSay) {
  const HostConfig config = resolve("Host other\n User x\n", {.host = "h"});
  EXPECT_EQ(config.host_name + config.user + config.proxy_command + config.jump + config.host_key_alias, "");
  EXPECT_EQ(config.port, 0);
  EXPECT_TRUE(config.identities.empty() && config.algorithms.empty() && config.certificates.empty());
  EXPECT_FALSE(config.user_known_hosts || config.global_known_hosts || config.agent_socket);
  EXPECT_EQ(config.strict, StrictKeys::unsaid);
}

TEST_F(SshConfig, LetsTheClientDecideOnMatch) {
  if (!find_in_path("ssh", environment("PATH").value_or(""))) GTEST_SKIP() << "SKIPPED LOUDLY: no ssh client";
  const std::string text = "Match user ann exec \"test 1 = 1\"\n HostName of-ann\nMatch all\n HostName of-others\n";
  EXPECT_EQ(resolve(text, {.host = "h", .user = "ann"}).host_name, "of-ann");
  EXPECT_EQ(resolve(text, {.host = "h", .user = "bob"}).host_name, "of-others");
  EXPECT_THROW(resolve("Nonsense yes\n", {.host = "h"}), UsageError);
}

TEST_F(SshConfig, LeavesAClientThatTakesLongWhenAskedToStop) {
  if (!find_in_path("ssh", environment("PATH").value_or(""))) GTEST_SKIP() << "SKIPPED LOUDLY: no ssh client";
  SshOptions options;
  options.config = write("Match exec \"sleep 30\"\n User ann\n");
  std::stop_source stop;
  stop.request_stop();
  const Patience patience{Clock::now() + std::chrono::seconds(20), stop.get_token()};
  EXPECT_THROW(effective_config({.host = "h"}, options, patience), Stopped);
}

TEST_F(SshConfig, RefusesByNameWhatItCannotFollow) {
  for (const char* line : {"RevokedHostKeys /keys", "KnownHostsCommand /bin/true", "VerifyHostKeyDNS yes",
                           "BindAddress 10.0.0.1", "PKCS11Provider /lib/x.so"}) {
    SCOPED_TRACE(line);
    const std::string keyword = std::string(line, std::strchr(line, ' '));
    for (const bool with_client : {false, true}) {
      try {
        const std::string text = fmt::format("Host h\n {}\n", line);
        with_client ? resolve(text, {.host = "h"}) : read(text, "h");
        FAIL() << "it passed over " << line;
      } catch (const UsageError& error) {
        EXPECT_TRUE(starts_with_ignoring_case(
            std::string_view(error.what()).substr(std::string_view(error.what()).find('\'') + 1), keyword))
            << error.what();
      }
    }
  }
  EXPECT_EQ(read("RevokedHostKeys none\nVerifyHostKeyDNS no\n", "h").port, 0);
}

TEST_F(SshConfig, FillsNothingIntoAProxyCommandThatAShellCouldRun) {
  const std::string text = "ProxyCommand nc %h %p\n";
  EXPECT_THROW(read(text, "h;reboot"), UsageError);
  EXPECT_THROW(read("HostName $(reboot)\n" + text, "h"), UsageError);
  EXPECT_THROW(read("User `reboot`\n" + text, "h"), UsageError);
  EXPECT_EQ(read(text, "h").proxy_command, "nc h 22");
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
  EXPECT_EQ(read_config({folder_ / "none"}, {.host = "h"}).port, 0);
  EXPECT_EQ(read_config({}, {.host = "h"}).port, 0);
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
