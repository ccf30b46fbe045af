#include <fmt/format.h>
#include <gtest/gtest.h>

#include "doctor_links.hpp"

namespace dtrain::doctor {
namespace {

// Three hosts without a fault: the first made the link and holds the lock.
std::vector<HostFacts> good_hosts() {
  std::vector<HostFacts> hosts(3);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    hosts[i].name = fmt::format("h{}", i + 1);
    hosts[i].answered = true;
    hosts[i].clock_at_least = -0.2;
    hosts[i].clock_at_most = 0.2;
    hosts[i].folder = {.write_error = "", .made_link = i == 0, .seen = {0, 1, 2}, .lock_is_kept = true};
    hosts[i].links.resize(hosts.size());
  }
  return hosts;
}

std::vector<std::string> bad(const std::vector<Finding>& findings) {
  std::vector<std::string> texts;
  for (const Finding& finding : findings) {
    if (finding.level > Level::fine) texts.push_back(finding.what);
  }
  return texts;
}
using Texts = std::vector<std::string>;

TEST(DoctorLinks, GoodHostsAreFine) {
  EXPECT_EQ(bad(judge_clocks(good_hosts())), Texts());
  EXPECT_EQ(bad(judge_links(good_hosts())), Texts());
  EXPECT_EQ(bad(judge_folder(good_hosts(), "/efs/job")), Texts());
  EXPECT_TRUE(judge_folder(good_hosts(), "").empty());
}

TEST(DoctorLinks, AClockCountsOnlyAsFarAsTheTimeOfTheQuestionCannotExplainIt) {
  auto hosts = good_hosts();
  hosts[1].clock_at_least = -30;
  hosts[1].clock_at_most = 0.5;
  EXPECT_EQ(bad(judge_clocks(hosts)), Texts()) << "the answer may just have been slow";
  hosts[1].clock_at_most = -10;
  EXPECT_EQ(bad(judge_clocks(hosts)), Texts{"h2 is at least 10.0 s behind this machine"});
  hosts[1] = good_hosts()[1];
  hosts[1].clock_at_least = 400;
  hosts[1].clock_at_most = 401;
  EXPECT_EQ(judge_clocks(hosts)[0].level, Level::problem) << "AWS refuses that";
}

TEST(DoctorLinks, AWayThatIsClosedIsNamedInItsDirection) {
  auto hosts = good_hosts();
  hosts[2].links[0].error = "no answer in time";
  EXPECT_EQ(bad(judge_links(hosts)), Texts{"h3 does not reach h1: no answer in time"});
  hosts[0].answered = false;
  EXPECT_EQ(bad(judge_links(hosts)), Texts()) << "what is wrong with a host that is not there is said of itself";
}

TEST(DoctorLinks, OneMachineUnderTwoNamesIsANote) {
  auto hosts = good_hosts();
  EXPECT_TRUE(judge_machines(hosts).empty()) << "none said which machine it is";
  for (HostFacts& host : hosts) host.machine = "machine of " + host.name;
  EXPECT_TRUE(judge_machines(hosts).empty());
  hosts[2].machine = hosts[0].machine;
  const auto found = judge_machines(hosts);
  EXPECT_EQ(bad(found), Texts{"h1, h3 are one machine"});
  EXPECT_EQ(found[0].level, Level::note) << "it may be on purpose";
  hosts[2].answered = false;
  EXPECT_TRUE(judge_machines(hosts).empty());
}

TEST(DoctorLinks, AFolderThatIsAnotherOneIsSeen) {
  auto hosts = good_hosts();
  hosts[2].folder.seen = {2};
  EXPECT_EQ(bad(judge_folder(hosts, "/efs/job")), Texts{"h3: /efs/job does not hold the files of h1, h2"});
}

TEST(DoctorLinks, AFolderWithoutLinksOrLocksIsSeen) {
  auto hosts = good_hosts();
  hosts[1].folder.made_link = true;
  EXPECT_EQ(bad(judge_folder(hosts, "/j")), Texts{"/j: 2 hosts succeeded in creating the same link"});
  hosts = good_hosts();
  hosts[1].folder.lock_is_kept = false;
  EXPECT_EQ(bad(judge_folder(hosts, "/j")), Texts{"h2: /j does not show a lock that another host holds"});
}

}  // namespace
}  // namespace dtrain::doctor
