#include "machines.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "common/temporary_folder.hpp"

namespace dtrain::board {
namespace {

// The states of the hosts of a job with these events, each an object without its braces.
std::map<std::string, std::string> states_after(const std::vector<std::string>& events) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a-run");
  std::ofstream(folder / "a-run/steps.jsonl")
      << "{\"time\":\"2026-01-31T12:00:01Z\",\"epoch\":0,\"step\":0,\"steps\":9,\"loss\":2}\n";
  {
    std::ofstream file(folder / "a-run/events.jsonl");
    for (const std::string& event : events) file << "{\"time\":\"2026-01-31T12:00:02.000000Z\"," << event << "}\n";
  }
  Catalog catalog({folder.path().string()}, nullptr);
  catalog.look(std::chrono::steady_clock::now(), [] { return false; });
  std::map<std::string, std::string> states;
  const Json machines = machines_of(catalog);
  for (const Json& host : machines.at("hosts").as_array())
    states[host.at("host").as_string()] = host.at("state").as_string();
  return states;
}

TEST(Machines, AHostTrainsFromTheCommitThatNamesItToTheEndOfTheJob) {
  using States = std::map<std::string, std::string>;
  std::vector<std::string> events = {R"("event":"host_starting","host":"w1")", R"("event":"preparing","host":"w1")",
                                     R"("event":"host_starting","host":"w2")",
                                     R"("event":"commit","generation":1,"members":["w1","w2","w2"])"};
  EXPECT_EQ(states_after(events), (States{{"w1", "training"}, {"w2", "training"}}));
  events.emplace_back(R"("event":"commit","generation":2,"members":["w1"])");
  EXPECT_EQ(states_after(events), (States{{"w1", "training"}, {"w2", "up"}}));
  events.emplace_back(R"("event":"removed","host":"w2","reason":"not in the host list")");
  events.emplace_back(R"("event":"host_down","host":"w2")");
  EXPECT_EQ(states_after(events), (States{{"w1", "training"}, {"w2", "removed"}}));
  events.emplace_back(R"("event":"host_down","host":"w1")");
  events.emplace_back(R"("event":"finish","exit_code":0)");
  EXPECT_EQ(states_after(events), (States{{"w1", "job over"}, {"w2", "removed"}}));
}

}  // namespace
}  // namespace dtrain::board
