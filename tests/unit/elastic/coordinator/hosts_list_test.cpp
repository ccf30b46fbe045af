#include <gtest/gtest.h>

#include "coordinator/job_tables.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

TEST(HostsList, AMemberWhoseRankIsNotKnownHasItsGenerationAndItsShare) {
  JobMeter meter;
  const Time begin{1h};
  for (std::uint64_t second = 1; second <= 5; ++second) {
    meter.heard({.generation = 7,
                 .phase = Phase::computing,
                 .position = {.has_state = true, .epoch = 0, .step = second, .samples_seen = 100 * second},
                 .step_seconds = 1},
                begin + second * 1s);
  }
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
  const Json list = hosts_list(state, meter, begin + 5s);
  const Json& row = list.at("hosts").as_array().at(0);
  EXPECT_TRUE(row.at("ranks").as_array().empty());
  EXPECT_EQ(row.at("generation"), Json(7));
  EXPECT_GT(row.at("samples_per_second").as_number(), 0);
}

}  // namespace
}  // namespace dtrain::elastic
