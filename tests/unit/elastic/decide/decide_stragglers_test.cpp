#include <set>

#include "decide/compute_times.hpp"
#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

// Steps in which the workers of some hosts compute so much longer than the others.
void train_unevenly(Job& job, int steps, const std::set<std::string>& slow, double factor) {
  for (int i = 0; i < steps; ++i) {
    ++job.step;
    for (const std::string& name : job.ranks()) {
      job.say(job.worker_on(name), Progress{.generation = job.state().current->number,
                                            .phase = Phase::computing,
                                            .position = {true, 0, job.step, job.step},
                                            .seconds_in_phase = 0,
                                            .step_seconds = 0.3,
                                            .compute_seconds = slow.contains(name) ? 0.1 * factor : 0.1});
    }
    job.pass(300ms);
  }
}

TEST(DecideStragglers, AStragglerIsNamedOnceAndHasAScore) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  train_unevenly(job, 20, {"w2"}, 3);
  const auto found = events(job.all(), EventKind::straggler);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at("host").as_string(), "w2");
  EXPECT_GT(ComputeTimes(job.state()).straggler_score(job.worker("w2")), 2.5);
  EXPECT_TRUE(events(job.all(), EventKind::failed).empty());
}

TEST(DecideStragglers, OneOfTwoWorkersIsAStraggler) {
  Job job;
  job.run_on({"w1", "w2"});
  train_unevenly(job, 20, {"w2"}, 3);
  const auto found = events(job.all(), EventKind::straggler);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at("host").as_string(), "w2");
  EXPECT_LE(found[0].at("median_seconds").as_number(), 0.1) << "of the other alone";
  EXPECT_GT(ComputeTimes(job.state()).straggler_score(job.worker("w2")), 2.5);
  EXPECT_LT(ComputeTimes(job.state()).straggler_score(job.worker("w1")), 0.5);
}

TEST(DecideStragglers, TwoOfFourWorkersAreStragglers) {
  Job job;
  job.run_on({"w1", "w2", "w3", "w4"});
  train_unevenly(job, 20, {"w2", "w3"}, 3);
  std::set<std::string> hosts;
  for (const auto& event : events(job.all(), EventKind::straggler)) hosts.insert(event.at("host").as_string());
  EXPECT_EQ(hosts, (std::set<std::string>{"w2", "w3"}));
}

TEST(DecideStragglers, WorkersOfOneSpeedAreNoStragglers) {
  for (const auto& hosts : {std::set<std::string>{"w1", "w2"}, {"w1", "w2", "w3", "w4"}}) {
    Job job;
    job.run_on({hosts.begin(), hosts.end()});
    train_unevenly(job, 20, {}, 1);
    EXPECT_TRUE(events(job.all(), EventKind::straggler).empty());
  }
}

TEST(DecideStragglers, AHostThatIsSlowNowAndThenIsNamedOnceAMinute) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  for (int i = 0; i < 5; ++i) {  // 30 s
    train_unevenly(job, 10, {"w2"}, 5);
    train_unevenly(job, 10, {"w2"}, 1);
  }
  EXPECT_EQ(events(job.all(), EventKind::straggler).size(), 1u);
  train_unevenly(job, 110, {"w2"}, 5);
  EXPECT_EQ(events(job.all(), EventKind::straggler).size(), 2u) << "it is still slow after a minute";
}

}  // namespace
}  // namespace dtrain::elastic
