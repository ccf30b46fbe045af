// Agents that outlive their coordinator, and what a new one learns from them.
#include <signal.h>

#include <dtrain/base/error.hpp>

#include "world.hpp"

namespace dtrain::launcher {
namespace {

using elastic::HostDown;
using elastic::HostKnows;
using elastic::HostUp;
using elastic::Member;
using elastic::VoterSet;
using elastic::WorkerSays;

elastic::NetworkAgentPoolOptions outliving() {
  elastic::NetworkAgentPoolOptions options;
  options.outlive = true;
  options.silence = 3s;
  return options;
}

// One host with a worker that has said Hello.
void start_one(World& world) {
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 0, 1);
  world.next<WorkerSays>();
}

VoterSet voter_set_of(const std::string& host) { return {.generation = 1, .voters = {{host, "", {}}}, .members = {}}; }

TEST(Takeover, AgentsKeepTheirWorkersAndTellTheNextCoordinatorAboutThem) {
  World world(agent_with_worker(), outliving());
  start_one(world);
  const auto workers = world.worker_processes();
  const auto reports = world.take_over({voter_set_of("w1")});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].host, "w1");
  ASSERT_EQ(reports[0].workers.size(), 1u);
  EXPECT_EQ(reports[0].workers[0].worker, 1u);
  EXPECT_EQ(std::get<elastic::Hello>(reports[0].workers[0].said.at(0)).pid, 7);
  world.act([](auto& agent_pool) { agent_pool.send(1, elastic::Freeze{9}); });
  EXPECT_TRUE(holds_soon([&] { return world.printed("w1.0 told {\"type\":\"freeze\",\"generation\":9}"); }));
  EXPECT_EQ(world.worker_processes(), workers);
}

TEST(Takeover, WhatWorkersSayMeanwhileIsNotLost) {
  World world(agent_with_worker(), outliving());
  start_one(world);
  world.drop_agent_pool();
  for (const pid_t worker : world.worker_processes()) ::kill(worker, SIGKILL);
  holds_soon([&] { return world.worker_processes().empty(); });
  EXPECT_EQ(world.take_over({voter_set_of("w1")})[0].workers.size(), 1u) << "it is known until its end is";
  EXPECT_EQ(world.next<elastic::WorkerExited>().signal, SIGKILL);
}

TEST(Takeover, ANoticeThatCameMeanwhileIsNotLost) {
  World world(agent_with_worker(), outliving());
  start_one(world);
  world.drop_agent_pool();
  for (const pid_t agent : world.agents()) ::kill(agent, SIGTERM);
  for (int coordinators = 0; coordinators < 2; ++coordinators) {
    world.take_over({voter_set_of("w1")});
    const auto notice = world.next<elastic::HostNotice>();
    EXPECT_EQ(notice.host, "w1");
    EXPECT_TRUE(notice.leave);
  }
}

TEST(Takeover, AgentsLearnWhoHasASayAndSaySo) {
  World world(agent_with_worker(), outliving());
  start_one(world);
  const std::vector<Member> members = {{.worker = 1, .host = "w1", .slot = 0, .data = {"127.0.0.1", 5}}};
  world.act([&](auto& agent_pool) { agent_pool.announce_voters(4, true, members); });
  EXPECT_EQ(world.next<HostKnows>().generation, 4u);
  const auto reports = world.take_over({voter_set_of("w1")});
  const auto& committed = reports.at(0).voters.committed;
  ASSERT_TRUE(committed);
  EXPECT_EQ(committed->members, members);
  EXPECT_EQ(committed->voters.at(0).host, "w1");
  EXPECT_NE(committed->voters.at(0).address.port, 0);
}

TEST(Takeover, BeginsWhenThoseThatVotedAreThereAndNoOtherComes) {
  World world(agent_with_worker(), outliving());
  start_one(world);
  VoterSet voter_set = voter_set_of("w1");
  voter_set.voters.push_back({"w2", "", {}});
  EXPECT_EQ(world.take_over({voter_set}, 1h, {"w1"}, 200ms).size(), 1u);
}

TEST(Takeover, WaitsForAnAgentThatVoted) {
  World world(agent_with_worker(), outliving());
  start_one(world);
  VoterSet voter_set = voter_set_of("w1");
  voter_set.voters.push_back({"w2", "", {}});
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(world.take_over({voter_set}, 3s, {"w1", "w2"}, 10ms).size(), 1u);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 3s);
}

TEST(Takeover, WhoDoesNotComeIsNotWaitedForForEver) {
  World world(agent_with_worker(), outliving());
  start_one(world);
  VoterSet voter_set = voter_set_of("w1");
  voter_set.voters.push_back({"w2", "", {}});
  EXPECT_EQ(world.take_over({voter_set}, 5s).size(), 1u);
}

TEST(Takeover, AnAgentThatComesBackTooLateStartsAnew) {
  World world(agent_with_worker(), outliving());
  start_one(world);
  const auto before = world.worker_processes();
  for (const pid_t agent : world.agents()) ::kill(agent, SIGSTOP);
  EXPECT_EQ(world.take_over({voter_set_of("w1")}, 100ms).size(), 0u);
  for (const pid_t agent : world.agents()) ::kill(agent, SIGCONT);
  EXPECT_EQ(world.next<HostUp>().host, "w1");
  EXPECT_TRUE(holds_soon([&] { return world.worker_processes().empty(); })) << before.size();
  world.start_worker("w1", 0, 2);
  EXPECT_EQ(world.next<WorkerSays>().worker, 2u);
}

TEST(Takeover, AnAgentThatIsSilentIsLostAndComesBack) {
  World world(agent_with_worker(), outliving());
  start_one(world);
  const auto agents = world.agents();
  ::kill(agents.at(0), SIGSTOP);
  EXPECT_NE(world.next<HostDown>().reason.find("nothing was heard"), std::string::npos);
  ::kill(agents.at(0), SIGCONT);
  EXPECT_EQ(world.next<HostUp>().host, "w1");
  EXPECT_EQ(world.agents(), agents);
}

TEST(Takeover, AnAgentThatMayNotOutliveEndsWhenTheCoordinatorIsSilent) {
  elastic::NetworkAgentPoolOptions options;
  options.silence = 3s;
  World world(agent_with_worker(), options);
  start_one(world);
  world.act([&](auto&) { EXPECT_TRUE(holds_soon([&] { return world.agents().empty(); })); });
}

}  // namespace
}  // namespace dtrain::launcher
