// Rounds of local steps under joins, leaves and deaths: the result has the bits of a run without any.
#include "../elastic_run.hpp"

namespace dtrain::train {
namespace {

class LocalStepsRun : public ElasticTraining {
 protected:
  LocalStepsRun() {
    options_.local = {.steps = 2};
    options_.global_batch = 20;  // rounds of 20, 20 and 5 samples
    options_.logical_shards = 4;
    options_.optimizer.kind = nn::OptimizerKind::adam;
    options_.schedule.base = 0.01;
  }
};

TEST_F(LocalStepsRun, AnyNumberOfWorkersEndsInTheSameBits) {
  const JobEnd alone = undisturbed();
  EXPECT_EQ(alone.log.steps.size(), 6u);
  EXPECT_EQ(alone.survivor().state.updates, 2u * (2 + 2 + 1)) << "of the inner optimizer";
  expect_same_run(alone, run({{.workers = {0, 1}}}));
  expect_same_run(alone, run({{.workers = {0, 1, 2}}}));
  expect_same_run(alone, run({{.workers = {0, 1, 2, 3, 4}}}));
}

TEST_F(LocalStepsRun, EachOuterOptimizerIsARunOfItsOwn) {
  std::set<std::vector<float>> weights;
  for (const OuterOptimizer outer : {OuterOptimizer::average, OuterOptimizer::sgd, OuterOptimizer::nesterov}) {
    options_.local.outer = outer;
    const JobEnd alone = undisturbed();
    expect_same_run(alone, run({{.workers = {0, 1, 2}, .until = 20}, {.workers = {2, 3}}}));
    weights.insert(alone.survivor().state.parameters);
  }
  options_.local = {};
  weights.insert(undisturbed().survivor().state.parameters);
  EXPECT_EQ(weights.size(), 4u);
}

TEST_F(LocalStepsRun, AWorkerThatDiesTakesOnlyTheRoundWithIt) { expect_no_trace_of_a_death(); }

// A freeze that comes amid a round ends it there; the next generation computes it again.
TEST_F(LocalStepsRun, ARoundThatAFreezeCutsOffLeavesNoTrace) {
  const JobEnd alone = undisturbed();
  std::atomic<int> computed = 0;
  on_point_ = [&](int worker, Point point, std::uint64_t samples_seen) {
    if (worker == 1 && point == Point::computing && samples_seen == 20 && ++computed == 2) throw PeerLost("frozen");
  };
  const JobEnd job = run({{.workers = {0, 1, 2}, .until = 1000}, {.workers = {0, 1, 2}}});
  EXPECT_GE(computed, 2);
  for (const int worker : {0, 1, 2}) EXPECT_EQ(job.workers.at(worker).losses, 1);
  expect_same_run(alone, job);
}

TEST_F(LocalStepsRun, EveryRecipeAndRoundedMovementsKeepTheBits) {
  options_.mix = {.mixup = 0.8f, .cutmix = 1};
  options_.optimizer.clip_norm = 0.5f;
  options_.gradient_dtype = backend::DType::bfloat16;
  options_.logical_shards = 2;
  const JobEnd alone = undisturbed();
  expect_same_run(alone, run({{.workers = {0}, .until = 20}, {.workers = {0, 1}, .until = 45}, {.workers = {1}}}));
}

TEST_F(LocalStepsRun, ResumesFromACheckpointWithAnotherNumberOfWorkers) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "m";
  run({{.workers = {0, 1, 2}, .until = 20, .stops = true}});
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "m").at(0).stem() + ".json");
  EXPECT_EQ(saved.job.local, options_.local);
  EXPECT_EQ(saved.job.global_batch, 10) << "of an inner step";
  EXPECT_EQ(saved.state.optimizer.size(), 3 * saved.state.parameters.size()) << "adam's two and nesterov's momentum";
  const JobEnd second = run({{.workers = {0, 1}}}, {{0, &saved}, {1, &saved}});
  expect_same_bits(alone.survivor().state, second.survivor().state);
}

}  // namespace
}  // namespace dtrain::train
