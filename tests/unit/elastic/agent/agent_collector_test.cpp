#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "agent/agent_collector.hpp"
#include "agent/wire.hpp"
#include "elastic/inbox.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

constexpr const char* kToken = "the job's token";
constexpr CollectTimes kNoLimit{.wait = 1h, .quiet = 1h};

ElectionResult election_of(const std::vector<std::string>& hosts) {
  VoterSet voter_set{.generation = 1, .voters = {}, .members = {}};
  for (const std::string& host : hosts) voter_set.voters.push_back({host, "tree", {}});
  return {.term = 2, .voter_sets = {voter_set}, .tiebreakers = {}, .granted_by = {}};
}

HostReport empty_report(const std::string& host) {
  return {.host = host, .address = "127.0.0.1", .voters = {}, .workers = {}};
}

TEST(AgentCollector, AwaitsAnAgentAgainWhoseConnectionIsLost) {
  net::Loop loop;
  int complete = 0;
  std::vector<HostReport> collected;
  const auto collector = std::make_shared<AgentCollector>(
      loop, election_of({"w1", "w2"}), kNoLimit, [&] { ++complete; },
      [&](std::vector<HostReport> reports) { collected = std::move(reports); });
  collector->take(empty_report("w1"));
  collector->drop("w1");
  collector->take(empty_report("w2"));
  EXPECT_EQ(complete, 0);
  collector->take(empty_report("w1"));
  EXPECT_EQ(complete, 1);
  collector->end([](const AgentPoolEvent&) { ADD_FAILURE() << "nothing waits"; });
  EXPECT_EQ(collected.size(), 2u);
}

struct IdleLauncher final : AgentLauncher {
  void start(const HostLine&, const AgentOrder&, Failed) override {}
};

struct JoinedAgent {
  std::shared_ptr<net::Channel> channel;
  Tag answer = Tag::alive;           // the coordinator's first frame
  std::shared_future<void> asked{};  // it got a sign of life
};

JoinedAgent join_as_agent(net::Loop& loop, const NetworkAgentPool& pool, const std::string& host,
                          const std::string& tree) {
  const auto answer = std::make_shared<std::promise<Tag>>();
  const auto asked = std::make_shared<std::promise<void>>();
  JoinedAgent agent{net::connect_channel(loop, pool.address(), pool.port(), kToken, kPatience), Tag::alive,
                    asked->get_future().share()};
  agent.channel->listen({.on_frame =
                             [answer, asked, first = true, was_asked = false](std::string frame) mutable {
                               const Tag tag = decode(std::move(frame)).tag;
                               if (std::exchange(first, false)) answer->set_value(tag);
                               if (tag == Tag::alive && !std::exchange(was_asked, true)) asked->set_value();
                             },
                         .on_close = [](const std::string&) {}});
  const JoinRequest request{.host = host, .tree = tree, .term = 1, .port = 1};
  agent.channel->send(encode(Tag::join, 0, to_json(request).dump()));
  std::future<Tag> answered = answer->get_future();
  if (answered.wait_for(kPatience) != std::future_status::ready) throw Error("the coordinator does not answer");
  agent.answer = answered.get();
  return agent;
}

class LoopThread {
 public:
  explicit LoopThread(net::Loop& loop) : loop_(loop), thread_([&loop] { loop.run(); }) {}
  ~LoopThread() {
    loop_.stop();
    thread_.join();
  }

 private:
  net::Loop& loop_;
  std::thread thread_;
};

TEST(AgentCollector, AConnectionThatBreaksMeanwhileCostsAnAgentNothing) {
  net::Loop loop;
  IdleLauncher launcher;
  NetworkAgentPoolOptions options;
  options.token = kToken;
  options.job_folder = ".";
  options.outlive = true;
  options.term = 2;
  std::vector<AgentPoolEvent> events;
  NetworkAgentPool pool(loop, launcher, options, [&](AgentPoolEvent event) { events.push_back(std::move(event)); });
  std::vector<HostReport> collected;
  std::promise<void> begun;
  pool.collect_agents(election_of({"w1", "w2"}), kNoLimit, [&](std::vector<HostReport> reports) {
    collected = std::move(reports);
    loop.post([&] { begun.set_value(); });  // after the events that waited
  });
  JoinedAgent again, other;  // stay connected until the loop has ended
  {
    const LoopThread thread(loop);
    join_as_agent(loop, pool, "w1", "one");  // and hangs up
    // The coordinator refuses another start for as long as it knows the first connection.
    do {
      again = join_as_agent(loop, pool, "w1", "two");
    } while (again.answer == Tag::end);
    EXPECT_EQ(again.answer, Tag::welcome);
    other = join_as_agent(loop, pool, "w2", "one");
    EXPECT_EQ(begun.get_future().wait_for(kPatience), std::future_status::ready);
    // Without a beat: the pool of this test sends none.
    for (const JoinedAgent* agent : {&again, &other}) {
      EXPECT_EQ(agent->asked.wait_for(kPatience), std::future_status::ready);
    }
  }
  ASSERT_EQ(collected.size(), 2u);
  EXPECT_EQ(collected[0].host, "w1");
  EXPECT_EQ(collected[1].host, "w2");
  for (const AgentPoolEvent& event : events) EXPECT_FALSE(std::holds_alternative<HostDown>(event));
}

}  // namespace
}  // namespace dtrain::elastic
