// An evaluation in which one rank ends much later than the ranks wait for each other.
#include "train/elastic_run.hpp"

namespace dtrain::train {
namespace {

using namespace std::chrono_literals;

// Worker 1 takes about 3.4 s for its seven blocks of an evaluation, and a sixth of the patience for each, so that a
// busy machine has time left.
class SlowEvaluation : public ElasticTraining {
 protected:
  SlowEvaluation() {
    options_.epochs = 1;
    options_.evaluation_block = 3;
    patience_ = 3s;
    on_point_ = [](int worker, Point point, std::uint64_t) {
      if (worker == 1 && point == Point::evaluating) std::this_thread::sleep_for(480ms);
    };
  }
};

TEST_F(SlowEvaluation, IsWaitedFor) {
  const JobEnd alone = undisturbed();
  const JobEnd job = run({{.workers = {0, 1}}});
  expect_same_run(alone, job);
  for (const auto& [worker, end] : job.workers) EXPECT_EQ(end.losses, 0) << "worker " << worker;
}

TEST_F(SlowEvaluation, IsNotWaitedForByThoseThatLoseTheirGeneration) {
  const JobEnd alone = undisturbed();
  const Script script{{.workers = {0, 1, 2}, .until = 45, .killed = 2, .point = Point::evaluating},
                      {.workers = {0, 1}}};
  expect_same_run(alone, run(script));
}

}  // namespace
}  // namespace dtrain::train
