#include <signal.h>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/network_agent_pool.hpp>

#include "world.hpp"

namespace dtrain::launcher {
namespace {

using elastic::HostDown;
using elastic::HostUp;
using elastic::WorkerExited;

elastic::NetworkAgentPoolOptions impatient() {
  elastic::NetworkAgentPoolOptions options;
  options.join_deadline = 500ms;
  return options;
}

TEST(NetworkAgentPool, SaysWhyAnAgentDoesNotStart) {
  World world({"/no/such/program"});
  world.start_host("w1");
  const auto down = world.next<HostDown>();
  EXPECT_EQ(down.host, "w1");
  EXPECT_NE(down.reason.find("/no/such/program"), std::string::npos);
}

TEST(NetworkAgentPool, GivesUpAnAgentThatDoesNotJoin) {
  World world({"/bin/sleep", "600"}, impatient());
  world.start_host("w1");
  EXPECT_NE(world.next<HostDown>().reason.find("did not join"), std::string::npos);
}

TEST(NetworkAgentPool, StartsAHostAgainAfterItsAgentDied) {
  World world(agent_with_worker());
  world.start_host("w1");
  world.next<HostUp>();
  ::kill(world.agents().at(0), SIGKILL);
  EXPECT_EQ(world.next<HostDown>().host, "w1");
  world.start_host("w1");
  EXPECT_EQ(world.next<HostUp>().host, "w1");
}

TEST(NetworkAgentPool, ReplacesTheAgentOfAHostThatIsStartedTwice) {
  World world(agent_with_worker());
  world.start_host("w1");
  world.next<HostUp>();
  world.start_host("w1");
  world.next<HostUp>();
  EXPECT_TRUE(holds_soon([&] { return world.agents().size() == 1; }));
}

// A command, as `dtrain hosts list` is one.
struct Command {
  std::promise<std::string> answer, end;
  std::shared_ptr<net::Channel> channel;
  Command(World& world, const std::string& token) {
    channel = net::connect_channel(world.loop(), "127.0.0.1", world.port(), token, 10s);
    channel->listen({[this](std::string frame) { answer.set_value(std::move(frame)); },
                     [this](std::string reason) { end.set_value(std::move(reason)); }});
  }
};

TEST(NetworkAgentPool, SendsNoVariableOfItsOwnWhereNoneIsChosen) {
  elastic::NetworkAgentPoolOptions options;
  options.environment.emplace();
  World world(agent_with_shell("echo $(env | grep -c ^HOME=) of HOME"), options);
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 0, 1);
  world.next<WorkerExited>();
  EXPECT_EQ(world.log("w1.0.log"), "0 of HOME\n");
}

TEST(NetworkAgentPool, TakesTheRequestsOfCommands) {
  World world(agent_with_worker());
  Command command(world, world.token());
  command.channel->send("{\"ask\": \"list\"}");
  const auto request = world.next<elastic::Request>();
  EXPECT_EQ(request.body.at("ask").as_string(), "list");
  world.act([&](auto&) { request.answer(Json::object({{"ok", true}})); });
  EXPECT_EQ(command.answer.get_future().get(), "{\"ok\":true}");
}

TEST(NetworkAgentPool, HangsUpOnNonsenseAndAnswersNobodyWithoutTheToken) {
  World world(agent_with_worker());
  EXPECT_THROW(Command(world, "another token"), RemoteError);
  for (const std::string frame : {"", "nonsense", "jxxxxxxxx{}", "\xff\xff"}) {
    Command command(world, world.token());
    command.channel->send(frame);
    command.end.get_future().wait();
  }
  world.start_host("w1");
  world.next<HostUp>();
}

TEST(NetworkAgentPool, RefusesAnAgentThatItDidNotStart) {
  World world(agent_with_worker());
  Command stranger(world, world.token());
  stranger.channel->send(std::string("j\0\0\0\0\0\0\0\0", 9) + "{\"host\":\"w1\",\"tree\":\"\"}");
  stranger.end.get_future().wait();
}

TEST(NetworkAgentPool, KillsAWorkerThatTalksNonsense) {
  World world(agent_with_shell("printf '\\010\\0\\0\\0nonsense' >&3; sleep 600"));
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 0, 1);
  EXPECT_EQ(world.next<WorkerExited>().signal, SIGKILL);
}

TEST(NetworkAgentPool, LeaksNoDescriptorOverManyMembers) {
  const auto count = [] {
    std::size_t open = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++open;
    return open;
  };
  World world(agent_with_shell("true"));
  std::size_t before = 0;
  for (int i = 0; i < 20; ++i) {
    world.start_host("w1");
    world.next<HostUp>();
    world.start_worker("w1", 0, elastic::WorkerId(i + 1));
    world.next<WorkerExited>();
    world.act([](auto& agent_pool) { agent_pool.end_host("w1"); });
    world.next<HostDown>();
    if (i == 2) before = count();
  }
  EXPECT_TRUE(holds_soon([&] { return count() <= before; })) << count() << " after " << before;
}

}  // namespace
}  // namespace dtrain::launcher
