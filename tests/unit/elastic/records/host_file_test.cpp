#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/host_file.hpp>

namespace dtrain::elastic {
namespace {

using Names = std::vector<std::string>;

Names names(const HostList& list) {
  Names found;
  for (const HostLine& host : list.hosts) found.push_back(host.name);
  return found;
}

HostLine one(std::string_view text) {
  const HostList list = parse_host_file(text);
  EXPECT_EQ(list.hosts.size(), 1u) << text;
  EXPECT_TRUE(list.problems.empty()) << text;
  return list.hosts.empty() ? HostLine{} : list.hosts[0];
}

TEST(HostFile, BlankLinesCommentsReturnsAndSpacesMeanNothing) {
  const HostList list = parse_host_file("\xef\xbb\xbf# workers\r\n\r\n  w1  \r\n\tw2 # the second\n\n#w3\nw4");
  EXPECT_EQ(names(list), (Names{"w1", "w2", "w4"}));
  EXPECT_TRUE(list.problems.empty());
  EXPECT_TRUE(list.doubtful.empty());
}

TEST(HostFile, ALineMayHoldUserPortAndSlots) {
  EXPECT_EQ(one("ubuntu@10.0.0.7:2222  slots=4"),
            (HostLine{.name = "ubuntu@10.0.0.7:2222", .user = "ubuntu", .host = "10.0.0.7", .port = 2222, .slots = 4}));
  EXPECT_EQ(one("w1"), (HostLine{.name = "w1", .user = "", .host = "w1", .port = 0, .slots = 1}));
}

TEST(HostFile, AddressesOfVersion6MayStandInBracketsOrBare) {
  EXPECT_EQ(one("[fe80::1%eth0]:22").host, "fe80::1%eth0");
  EXPECT_EQ(one("[fe80::1%eth0]:22").port, 22);
  EXPECT_EQ(one("[::1]").host, "::1");
  EXPECT_EQ(one("2001:db8::5").host, "2001:db8::5");
  EXPECT_EQ(one("2001:db8::5").port, 0);
}

TEST(HostFile, WhatCannotBeAHostIsAProblemWithItsLine) {
  for (const char* bad :
       {"w1:",    "w1:0",       "w1:65536",   "w1:x",      "@w1",       "-l@w1",    "-oProxyCommand=x",
        "a/b",    "w1 slots=0", "w1 slots=x", "w1 slots=", "w1 slot=2", "w1 w2",    "[::1",
        "[::1]x", "[w1]",       "w1;reboot",  "$(x)",      "w\x01",     "\xff\xfe", "10.0.0.1 ADDED",
        "<<<<<<<"}) {
    const HostList list = parse_host_file(std::string("ok\n") + bad + "\n");
    EXPECT_EQ(names(list), Names{"ok"}) << bad;
    ASSERT_EQ(list.problems.size(), 1u) << bad;
    EXPECT_EQ(list.problems[0].substr(0, 8), "line 2: ") << bad;
    EXPECT_EQ(list.doubtful, Names{bad});
  }
}

TEST(HostFile, ADuplicateIsAProblemButNoDoubt) {
  const HostList list = parse_host_file("w1\nw1 slots=2\nw2\n");
  EXPECT_EQ(names(list), (Names{"w1", "w2"}));
  EXPECT_EQ(list.hosts[0].slots, 1);
  EXPECT_EQ(list.problems.size(), 1u);
  EXPECT_TRUE(list.doubtful.empty());
}

TEST(HostFile, AddingKeepsEverythingElseAsItWas) {
  EXPECT_EQ(with_host("# mine\r\nw1\r\n", "w2 slots=2"), "# mine\r\nw1\r\nw2 slots=2\n");
  EXPECT_EQ(with_host("w1", "w2"), "w1\nw2\n");
  EXPECT_EQ(with_host("", "w1"), "w1\n");
  EXPECT_THROW(with_host("w1\n", "w1 slots=2"), UsageError);
  for (const char* bad : {"", "# w2", "w2\nw3", "a b", "-x"}) EXPECT_THROW(with_host("w1\n", bad), UsageError) << bad;
}

TEST(HostFile, RemovingTakesAllLinesOfTheHostAndNothingElse) {
  EXPECT_EQ(without_host("# w1\nw1 slots=2 # old\nw10\n\nw1\njunk line", "w1"), "# w1\nw10\n\njunk line");
  EXPECT_EQ(without_host("w1", "w1"), "");
}

TEST(HostFile, RemovingAHostThatIsNotThereNamesTheNearest) {
  try {
    without_host("worker1\nother\n", "worker11");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.hint(), "did you mean worker1?");
  }
}

TEST(HostFile, AnyBytesAreReadWithoutHarm) {
  std::string text;
  for (int i = 0; i < 2'000; ++i) text += static_cast<char>((i * 7919 + i / 256) % 256);
  const HostList list = parse_host_file(text + "\nw1\n");
  EXPECT_FALSE(list.doubtful.empty());
  for (const HostLine& host : list.hosts) EXPECT_EQ(one(host.name).name, host.name);
}

}  // namespace
}  // namespace dtrain::elastic
