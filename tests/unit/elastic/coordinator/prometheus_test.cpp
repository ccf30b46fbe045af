#include <gtest/gtest.h>

#include "coordinator/job_tables.hpp"
#include "elastic/coordinator/steady_meter.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

TEST(Prometheus, AJobThatEndsOrHasNoMembersHasNoSpeed) {
  const JobMeter meter = steady_meter(1);
  const auto speed_is = [&](const State& state, const char* speed) {
    const std::string line = std::string("\ndtrain_samples_per_second ") + speed + "\n";
    return prometheus_text(state, meter, kSteadyBegin + 5s).find(line) != std::string::npos;
  };
  State state;
  EXPECT_TRUE(speed_is(state, "0")) << "no generation";
  state.current.emplace();
  EXPECT_TRUE(speed_is(state, "0")) << "no member";
  state.current->members = {1};
  state.workers[1].id = 1;
  EXPECT_TRUE(speed_is(state, "100"));
  state.ending.emplace();
  EXPECT_TRUE(speed_is(state, "0"));
}

TEST(Prometheus, MembersOfAJobThatPausesDoNotTrain) {
  const auto workers_are = [](const State& state, const char* number) {
    const std::string line = std::string("\ndtrain_workers ") + number + "\n";
    return prometheus_text(state, JobMeter(), Time{1h}).find(line) != std::string::npos;
  };
  State state;
  state.current.emplace();
  state.current->members = {1};
  state.workers[1].id = 1;
  EXPECT_TRUE(workers_are(state, "1"));
  state.freezing.emplace();
  EXPECT_TRUE(workers_are(state, "0"));
}

TEST(Prometheus, AMemberHasTheRankThatWasCommittedOrNone) {
  State state;
  state.current.emplace();
  state.current->members = {2, 3, 4};
  for (const WorkerId id : state.current->members) {
    state.workers[id].id = id;
    state.workers[id].host = "w" + std::to_string(id);
  }
  state.workers[2].rank = 1;  // rank 0 was lost
  state.workers[3].rank = 2;
  const std::string text = prometheus_text(state, JobMeter(), Time{1h});
  EXPECT_NE(text.find("dtrain_step_seconds{rank=\"1\",host=\"w2\"}"), text.npos) << text;
  EXPECT_NE(text.find("dtrain_step_seconds{rank=\"2\",host=\"w3\"}"), text.npos) << text;
  EXPECT_EQ(text.find("w4"), text.npos) << text;
}

}  // namespace
}  // namespace dtrain::elastic
