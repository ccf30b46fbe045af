#include <gtest/gtest.h>

#include "coordinator/job_tables.hpp"
#include "elastic/coordinator/steady_meter.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

TEST(HostsList, AMemberWhoseRankIsNotKnownHasItsGenerationAndItsShare) {
  const JobMeter meter = steady_meter(7);
  State state;
  state.current.emplace();
  state.current->number = 7;
  state.current->members = {1};
  state.workers[1].id = 1;
  state.workers[1].host = "w1";
  state.workers[1].phase = WorkerPhase::member;
  state.hosts["w1"].line.name = "w1";
  state.hosts["w1"].wanted = true;
  state.hosts["w1"].slots = {1};
  const Json list = hosts_list(state, meter, kSteadyBegin + 5s);
  const Json& row = list.at("hosts").as_array().at(0);
  EXPECT_TRUE(row.at("ranks").as_array().empty());
  EXPECT_EQ(row.at("generation"), Json(7));
  EXPECT_GT(row.at("samples_per_second").as_number(), 0);
}

TEST(HostsList, AHostWhoseKeyChangedHasTheCommandThatForgetsTheOldOne) {
  State state;
  Host& host = state.hosts["w1"];
  host.line.name = "w1";
  host.wanted = true;
  host.allotted = 1;
  host.last_failure = "its host key changed";
  const auto row = [&] { return hosts_list(state, {}, kSteadyBegin).at("hosts").as_array().at(0); };
  EXPECT_EQ(row().find("forget_key"), nullptr);
  host.forget_key = "ssh-keygen -R w1";
  EXPECT_EQ(row().at("forget_key").as_string(), "ssh-keygen -R w1");
}

}  // namespace
}  // namespace dtrain::elastic
