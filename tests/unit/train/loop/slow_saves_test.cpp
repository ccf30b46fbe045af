// Checkpoints that take longer to be written than the ranks wait for each other.
#include <dtrain/net/objects.hpp>

#include "common/far_settings.hpp"
#include "train/elastic_run.hpp"

namespace dtrain::train {
namespace {

using namespace std::chrono_literals;

// The server takes a second for each of the two files of a checkpoint.
class SlowSaves : public ElasticTraining {
 protected:
  SlowSaves() {
    options_.epochs = 1;
    options_.store = std::make_shared<net::ObjectStore>(far_settings(*server));
    patience_ = 1800ms;
  }
  static void SetUpTestSuite() { server = std::make_unique<net::TestServer>("s3_server.py"); }
  static void TearDownTestSuite() { server.reset(); }

  JobEnd run_slowly(const Script& script) {
    options_.checkpoint_prefix =
        std::string("s3://bucket/slow_put/") + testing::UnitTest::GetInstance()->current_test_info()->name() + "/m";
    JobEnd job = run(script);
    for (const auto& [worker, end] : job.workers) {
      EXPECT_EQ(end.error, "") << "worker " << worker;
      EXPECT_EQ(end.losses, 0) << "worker " << worker;
    }
    return job;
  }
  std::vector<CheckpointName> saved() const { return list_checkpoints(*options_.checkpoint_prefix, options_.store); }

  static inline std::unique_ptr<net::TestServer> server;
};

TEST_F(SlowSaves, TheOthersWaitForTheLastWeights) {
  const JobEnd alone = undisturbed();
  const JobEnd job = run_slowly({{.workers = {0, 1, 2}}});
  expect_same_run(alone, job);
  EXPECT_TRUE(job.workers.at(0).result.saved);
}

TEST_F(SlowSaves, TheOthersWaitWhereTheSaveBeforeIsStillWritten) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_every_steps = 2;
  expect_same_run(alone, run_slowly({{.workers = {0, 1, 2}}}));
  EXPECT_EQ(saved().size(), 3u) << "at steps 2 and 4 and at the end";
}

TEST_F(SlowSaves, TheSaveForWhichTheyWaitIsMadeAlsoWhereAWorkerIsLostMeanwhile) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_every_steps = 2;
  options_.checkpoint_prefix = "s3://bucket/slow_put/lost_meanwhile/m";
  std::atomic<int> signs = 0;
  on_point_ = [&](int worker, Point point, std::uint64_t samples_seen) {
    if (samples_seen != 40) return;
    if (worker == 0 && point == Point::saving) ++signs;
    if (worker == 1 && point == Point::reducing && signs > 1) throw Killed();
  };
  const JobEnd job = run({{.workers = {0, 1, 2}}, {.workers = {0, 2}}});
  on_point_ = {};
  EXPECT_TRUE(job.workers.at(1).killed);
  expect_same_run(alone, job);
  EXPECT_EQ(saved().size(), 3u) << "at steps 2 and 4 and at the end";
}

TEST_F(SlowSaves, ANewcomerAndTheOthersWaitWhereTheEndOfAnEpochIsSaved) {
  options_.epochs = 2;
  const JobEnd alone = undisturbed();
  expect_same_run(alone, run_slowly({{.workers = {0, 1}, .until = 45, .at_epoch_end = true}, {.workers = {0, 1, 2}}}));
  EXPECT_EQ(saved().size(), 2u);
}

TEST_F(SlowSaves, AStopWaitsForTheSaveBefore) {
  options_.checkpoint_every_steps = 2;
  const JobEnd job = run_slowly({{.workers = {0, 1}, .until = 30, .stops = true}});
  EXPECT_TRUE(job.workers.at(0).result.saved);
  for (const int worker : {0, 1}) EXPECT_EQ(job.workers.at(worker).result.ended, TrainResult::Ended::stopped);
  ASSERT_EQ(saved().size(), 2u);
  EXPECT_EQ(saved().front().step, 3u);
}

}  // namespace
}  // namespace dtrain::train
