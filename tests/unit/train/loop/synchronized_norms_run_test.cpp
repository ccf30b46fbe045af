// Shards that meet at batch norms, under joins, leaves and deaths: the result has the bits of a run without any.
#include "../elastic_run.hpp"

namespace dtrain::train {
namespace {

class SynchronizedNormsRun : public ElasticTraining {
 protected:
  SynchronizedNormsRun() { norms_meet_ = true; }
};

TEST_F(SynchronizedNormsRun, AnyNumberOfWorkersEndsInTheSameBits) {
  const JobEnd alone = undisturbed();
  EXPECT_EQ(alone.log.steps.size(), 10u);
  expect_same_run(alone, run({{.workers = {0, 1}}}));
  expect_same_run(alone, run({{.workers = {0, 1, 2}}}));
  expect_same_run(alone, run({{.workers = {0, 1, 2, 3, 4}}}));
}

// Batches of 10 samples in 8 shards of one sample or two: norms of a shard see something else.
TEST_F(SynchronizedNormsRun, LearnsAsOneShardOfAllSamplesDoes) {
  const JobEnd many = undisturbed();
  norms_meet_ = false;
  const JobEnd apart = undisturbed();
  options_.logical_shards = 1;
  const JobEnd one = undisturbed();
  const auto last_loss = [](const JobEnd& job) { return job.log.steps.back().loss; };
  EXPECT_NEAR(last_loss(many), last_loss(one), 1e-4);
  EXPECT_GT(std::abs(last_loss(apart) - last_loss(one)), 1e-2);
  const auto& expected = one.survivor().state.statistics;
  const auto& actual = many.survivor().state.statistics;
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-4);
}

TEST_F(SynchronizedNormsRun, WorkersThatComeAndGoLeaveNoTrace) {
  expect_same_run(undisturbed(), run({{.workers = {0, 1}, .until = 20},
                                      {.workers = {0, 1, 2}, .until = 40},
                                      {.workers = {1, 2}, .until = 70},
                                      {.workers = {2}}}));
}

TEST_F(SynchronizedNormsRun, AWorkerThatDiesLeavesNoTrace) { expect_no_trace_of_a_death(); }

// Where the others wait for it at a norm.
TEST_F(SynchronizedNormsRun, ARankThatIsLostInTheMiddleOfAStepEndsItForAll) {
  const JobEnd alone = undisturbed();
  std::atomic<int> meetings = 0;
  on_point_ = [&](int worker, Point point, std::uint64_t samples_seen) {
    if (worker == 1 && point == Point::reducing && samples_seen == 20 && ++meetings == 2) throw PeerLost("frozen");
  };
  const JobEnd job = run({{.workers = {0, 1, 2}, .until = 1000}, {.workers = {0, 1, 2}}});
  EXPECT_GE(meetings, 2);
  for (const int worker : {0, 1, 2}) EXPECT_EQ(job.workers.at(worker).losses, 1);
  expect_same_run(alone, job);
}

TEST_F(SynchronizedNormsRun, EveryRecipeKeepsTheBits) {
  use_every_recipe();
  const JobEnd alone = undisturbed();
  expect_same_run(alone, run({{.workers = {0, 1, 2}, .until = 20}, {.workers = {2, 3}}}));
}

TEST_F(SynchronizedNormsRun, CompressedGradientsKeepTheBits) {
  for (const Compression kind : {Compression::two_bit, Compression::power_sgd}) {
    options_.compression = {.kind = kind, .threshold = 0.02f, .rank = 1, .window = 2};
    const JobEnd alone = undisturbed();
    expect_same_run(alone, run({{.workers = {0, 1, 2}}}));
  }
}

TEST_F(SynchronizedNormsRun, FollowsTheWorkersToo) {
  options_.elastic_batch = ElasticBatch::per_worker;
  options_.worker_batch = 5;
  const JobEnd job = run({{.workers = {0, 1, 2}, .until = 20}, {.workers = {0, 1}}});
  for (const auto& [worker, end] : job.workers) EXPECT_EQ(end.error, "") << "worker " << worker;
  expect_every_sample_once(job);
}

}  // namespace
}  // namespace dtrain::train
