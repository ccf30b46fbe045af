#include <gtest/gtest.h>
#include <unistd.h>

#include <dtrain/base/daemon.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/pipe.hpp>
#include <dtrain/base/wait_status.hpp>
#include <dtrain/elastic/agent.hpp>

#include "elastic/temporary_folder.hpp"
#include "welcomed_agent.hpp"

namespace dtrain::elastic {
namespace {

std::string all_of(const FileDescriptor& pipe) {
  std::string text;
  char chunk[4096];
  for (ssize_t got; (got = ::read(pipe.get(), chunk, sizeof chunk)) > 0;) text.append(chunk, static_cast<size_t>(got));
  return text;
}

// What a process says that runs the agent of this order.
std::string said_by_agent(const std::vector<std::string>& frames, std::function<void()> on_joined = {}) {
  const TemporaryFolder folder;
  Pipe order = make_pipe(), said = make_pipe();
  const pid_t agent = fork_process();
  if (agent == 0) {
    order.write_end = FileDescriptor();
    const auto say = [&](const std::string& text) { return ::write(said.write_end.get(), text.data(), text.size()); };
    try {
      run_agent({.order = agent_order_from_json(Json::parse(all_of(order.read_end), "the order")),
                 .worker_command = {"/bin/sleep", "600"},
                 .on_note = [&](const std::string& note) { say("noted: " + note); },
                 .on_joined = std::move(on_joined)});
    } catch (const std::exception& error) {
      say(std::string("failed: ") + error.what());
    }
    ::_exit(0);
  }
  said.write_end = FileDescriptor();
  const FrameSender coordinator(frames);
  const std::string text = to_json(coordinator.order(folder.path().string())).dump();
  EXPECT_EQ(::write(order.write_end.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  order.write_end = FileDescriptor();
  std::string heard = all_of(said.read_end);
  wait_for_end(agent);
  return heard;
}

TEST(AgentEnd, OfAWelcomedOneIsNotedUnlessTheCoordinatorAskedForIt) {
  EXPECT_EQ(said_by_agent({encode(Tag::start, 1, "-1")}),
            "noted: w1: its agent ends: the coordinator sent an invalid message: a number of an agent or coordinator "
            "cannot be read");
  EXPECT_EQ(said_by_agent({encode(Tag::start, 1, "1000001")}),
            "noted: w1: its agent ends: the coordinator sent an invalid message: 1000001 is no slot: 0 to 1000000");
  EXPECT_EQ(said_by_agent({encode(Tag::check, 0, "{}")}).find("noted: w1: its agent ends: the coordinator sent"), 0u);
  EXPECT_EQ(said_by_agent({encode(Tag::end, 0, "")}), "");
}

TEST(AgentEnd, ByItsOwnFailureIsNoFaultOfTheCoordinator) {
  EXPECT_EQ(said_by_agent({}, [] { throw DataError("a file here is damaged"); }), "failed: a file here is damaged");
}

}  // namespace
}  // namespace dtrain::elastic
