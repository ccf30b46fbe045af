#include "train/elastic_run.hpp"

namespace dtrain::train {
namespace {

TEST_F(ElasticTraining, WorkersThatComeAndGoLeaveNoTraceInTheResult) {
  const JobEnd alone = undisturbed();
  expect_same_run(alone, run({{.workers = {0, 1, 2}}}));
  expect_same_run(alone, run({{.workers = {0, 1}, .until = 10},
                              {.workers = {0, 1, 2}, .until = 30},
                              {.workers = {1, 2}, .until = 45, .at_epoch_end = true},
                              {.workers = {2, 3, 4, 5, 6}, .until = 60},
                              {.workers = {6}}}));
}

// Average, mixed images and the epochs without a better validation go to newcomers too.
TEST_F(ElasticTraining, WorkersThatComeAndGoLeaveNoTraceWithEveryRecipe) {
  use_every_recipe();
  options_.keep_best = true;
  const JobEnd alone = undisturbed();
  EXPECT_FALSE(alone.survivor().state.average.empty());
  expect_same_run(alone, run({{.workers = {0, 1}, .until = 10},
                              {.workers = {0, 1, 2}, .until = 30},
                              {.workers = {1, 2}, .until = 45, .at_epoch_end = true},
                              {.workers = {2, 3, 4}, .until = 60},
                              {.workers = {4}}}));
  for (const Point point : kAllPoints) {
    SCOPED_TRACE(int(point));
    expect_same_run(alone,
                    run({{.workers = {0, 1, 2}, .until = 45, .killed = 0, .point = point}, {.workers = {1, 3}}}));
  }
}

// Steps of 10 samples, four an epoch, and a shorter one that is not measured.
TEST_F(ElasticTraining, ShardsThatMoveToFasterWorkersLeaveNoTraceInTheResult) {
  options_.epochs = 10;
  options_.shard_window = std::chrono::milliseconds(1);
  const JobEnd alone = undisturbed();
  using namespace std::chrono_literals;
  slow_ = {{0, 2ms}, {1, 2ms}, {2, 24ms}, {3, 2ms}};
  const JobEnd job = run({{.workers = {0, 1, 2}, .until = 250}, {.workers = {1, 2, 3}}});
  expect_same_run(alone, job);
  const auto has_fewest = [&](std::size_t rank) {  // a busy machine may move them more often
    return std::ranges::any_of(job.log.shards, [&](const std::vector<int>& each) {
      return each[rank] < std::min(each[(rank + 1) % 3], each[(rank + 2) % 3]);
    });
  };
  EXPECT_TRUE(has_fewest(2)) << "in the first generation";
  EXPECT_TRUE(has_fewest(1)) << "in the second one";
  options_.shard_window = {};
  EXPECT_TRUE(run({{.workers = {0, 2}}}).log.shards.empty());
}

TEST_F(ElasticTraining, AWorkerMayDieWhereverShardsHaveMoved) {
  options_.epochs = 5;
  options_.shard_window = std::chrono::milliseconds(1);
  const JobEnd alone = undisturbed();
  slow_ = {{0, std::chrono::milliseconds(3)}};
  for (const Point point : kAllPoints) {
    SCOPED_TRACE(int(point));
    const JobEnd job = run({{.workers = {0, 1, 2}, .until = 200, .killed = 0, .point = point}, {.workers = {1, 2}}});
    expect_same_run(alone, job);
    EXPECT_FALSE(job.log.shards.empty());
  }
}

// The count of epochs without a better one is that of the run, not of a worker.
TEST_F(ElasticTraining, StopsEarlyAtTheSameEpochWhoeverIsThere) {
  options_.epochs = 8;
  options_.early_stop = 2;
  options_.schedule.base = 1e-9;
  const JobEnd job =
      run({{.workers = {0, 1}, .until = 60}, {.workers = {1, 2}, .until = 90, .at_epoch_end = true}, {.workers = {2}}});
  EXPECT_EQ(job.survivor().result.cursor.epoch, 3u);
  EXPECT_EQ(job.log.evaluations.size(), 3u);
}

TEST_F(ElasticTraining, AWorkerThatDiesAnywhereInAStepLeavesNoTraceInTheResult) {
  const JobEnd alone = undisturbed();
  for (const Point point : kAllPoints) {
    for (const int killed : {0, 1}) {
      // Inside an epoch, and in its last step or at its end.
      for (const std::uint64_t until : {20, 40, 45}) {
        SCOPED_TRACE(testing::Message() << "point " << int(point) << " worker " << killed << " after " << until);
        expect_same_run(alone, run({{.workers = {0, 1, 2}, .until = until, .killed = killed, .point = point},
                                    {.workers = {1 - killed, 2}}}));
      }
    }
  }
}

TEST_F(ElasticTraining, ANewcomerMayTakeThePlaceOfRankZeroThatDied) {
  const JobEnd alone = undisturbed();
  for (const Point point : kAllPoints) {
    SCOPED_TRACE(int(point));
    const JobEnd job = run({{.workers = {0, 1, 2}, .until = 20, .killed = 0, .point = point}, {.workers = {3, 1, 2}}});
    expect_same_run(alone, job);
  }
}

TEST_F(ElasticTraining, ASurvivorThatLagsAStepBehindReceivesIt) {
  const JobEnd alone = undisturbed();
  for (const int frozen : {0, 1, 2}) {
    for (const std::uint64_t until : {0, 20, 45}) {
      SCOPED_TRACE(testing::Message() << "worker " << frozen << " after " << until);
      const JobEnd job = run({{.workers = {0, 1, 2}, .until = until, .frozen = frozen}, {.workers = {0, 1, 2, 3}}});
      expect_same_run(alone, job);
      for (const int worker : {0, 1, 2}) EXPECT_EQ(job.workers.at(worker).losses, 1);
    }
  }
}

TEST_F(ElasticTraining, FollowsAnyScriptOfJoinsLeavesAndDeaths) {
  const JobEnd alone = undisturbed();
  for (std::uint32_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, RandomUse::drawing, 0, 0);
    Script script;
    std::vector<int> workers{0, 1};
    int next = 2;
    for (std::uint64_t samples = 0; samples < 90; samples += random.below(25)) {
      ScriptedGeneration generation{.workers = workers, .until = samples};
      if (workers.size() > 1 && random.below(2) == 0) {
        const std::uint32_t which = random.below(static_cast<std::uint32_t>(workers.size()));
        if (random.below(4) == 0) {
          generation.frozen = workers[which];
        } else {
          generation.killed = workers[which];
          generation.point = kAllPoints[random.below(std::size(kAllPoints))];
          workers.erase(workers.begin() + which);
        }
      } else if (workers.size() > 2 && random.below(2) == 0) {
        workers.erase(workers.begin() + random.below(static_cast<std::uint32_t>(workers.size())));
      }
      for (std::uint32_t more = random.below(3); more > 0 && workers.size() < 9; --more) workers.push_back(next++);
      script.push_back(generation);
    }
    script.push_back({.workers = workers});
    expect_same_run(alone, run(script));
  }
}

TEST_F(ElasticTraining, ResumesWithAnotherNumberOfWorkersAsIfNothingHadHappened) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "m";
  const JobEnd first = run({{.workers = {0, 1, 2}, .until = 20, .stops = true}});
  EXPECT_EQ(first.survivor().result.ended, TrainResult::Ended::stopped);
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "m").at(0).stem() + ".json");
  EXPECT_EQ(saved.cursor.position, 20u);
  const JobEnd second = run({{.workers = {0, 1, 2, 3, 4}}}, {{0, &saved}, {1, &saved}, {3, &saved}});
  expect_same_bits(alone.survivor().state, second.survivor().state);
  EXPECT_EQ(second.log.epochs.at(0).accuracy, alone.log.epochs.at(0).accuracy);
}

TEST_F(ElasticTraining, StartsFromTheCheckpointThatOnlyOneOfThemCanRead) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "m";
  run({{.workers = {0}, .until = 45, .stops = true}});
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "m").at(0).stem() + ".json");
  options_.checkpoint_prefix.reset();
  const JobEnd job = run({{.workers = {0, 1, 2}}}, {{2, &saved}});
  expect_same_bits(alone.survivor().state, job.survivor().state);
  EXPECT_EQ(job.log.steps.front().samples_seen, 55u);
}

TEST_F(ElasticTraining, ASurvivorThatIsToldToSaveDoesSo) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "m";
  const JobEnd job = run({{.workers = {0, 1}, .until = 30, .killed = 0, .point = Point::after_apply},
                          {.workers = {1}, .told = elastic::Entry::Kind::checkpoint}});
  EXPECT_EQ(job.workers.at(1).result.ended, TrainResult::Ended::stopped);
  EXPECT_TRUE(job.workers.at(1).result.saved);
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "m").at(0).stem() + ".json");
  EXPECT_GE(saved.cursor.position, 30u);
  expect_same_bits(alone.survivor().state, run({{.workers = {4}}}, {{4, &saved}}).survivor().state);
}

TEST_F(ElasticTraining, AStopSavesThoughRankZeroDiesBeforeItHas) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "m";
  on_point_ = [](int worker, Point point, std::uint64_t) {
    if (worker == 0 && point == Point::saving) throw Killed();
  };
  const JobEnd job = run(
      {{.workers = {0, 1}, .until = 20, .stops = true}, {.workers = {1}, .told = elastic::Entry::Kind::checkpoint}});
  on_point_ = {};
  EXPECT_TRUE(job.workers.at(0).killed);
  EXPECT_EQ(job.workers.at(1).error, "");
  EXPECT_TRUE(job.workers.at(1).result.saved) << "it left before rank 0 had saved";
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "m").at(0).stem() + ".json");
  EXPECT_EQ(saved.cursor.position, 20u);
  expect_same_bits(alone.survivor().state, run({{.workers = {4}}}, {{4, &saved}}).survivor().state);
}

TEST_F(ElasticTraining, DoesNotBeginAgainWhereTheRunHasTrained) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "m";
  run({{.workers = {0}, .until = 45, .stops = true}});
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "m").at(0).stem() + ".json");
  options_.checkpoint_prefix.reset();
  options_.lost_start = LostStart{saved.cursor.epoch, saved.cursor.step, "the disk is away"};
  const JobEnd job = run({{.workers = {0, 1}}});
  for (const auto& [worker, end] : job.workers) {
    EXPECT_NE(end.error.find("no worker can go on from there: the disk is away"), std::string::npos) << end.error;
  }
  EXPECT_TRUE(job.log.steps.empty());
  expect_same_bits(alone.survivor().state, run({{.workers = {0, 1}}}, {{1, &saved}}).survivor().state);
}

TEST_F(ElasticTraining, BeginsWithWhatWasSavedWhileTheWorkersWaited) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "m";
  run({{.workers = {0}, .until = 45, .stops = true}});
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "m").at(0).stem() + ".json");
  options_.checkpoint_prefix.reset();
  std::atomic<int> looks = 0;
  options_.find_start = [&]() -> std::optional<RunStart> {
    if (looks++ == 0) return RunStart{.checkpoint = &saved};
    return RunStart{.lost = LostStart{saved.cursor.epoch, saved.cursor.step, "the disk is away"}};
  };
  const JobEnd job = run({{.workers = {0, 1}}});
  for (const auto& [worker, end] : job.workers) EXPECT_EQ(end.error, "") << "worker " << worker;
  expect_same_bits(alone.survivor().state, job.survivor().state);
  ASSERT_FALSE(job.log.steps.empty());
  EXPECT_GT(job.log.steps.front().samples_seen, saved.cursor.samples_seen);
}

TEST_F(ElasticTraining, LooksForAnotherStartOnlyWhereNoWorkerHasTheState) {
  const JobEnd alone = undisturbed();
  std::atomic<int> looks = 0;
  options_.find_start = [&]() -> std::optional<RunStart> {
    ++looks;
    return std::nullopt;
  };
  expect_same_run(alone,
                  run({{.workers = {0, 1}, .until = 20}, {.workers = {0, 1, 2}, .until = 30}, {.workers = {2}}}));
  EXPECT_EQ(looks, 2) << "each worker of the first generation once";
}

TEST_F(ElasticTraining, ThrowsOutAWorkerThatComputesOtherBits) {
  const JobEnd alone = undisturbed();
  flawed_ = {{1, 5}};  // the next look is at the parameters: nothing wrong is contributed before it is seen
  const JobEnd job = run({{.workers = {0, 1, 2}}, {.workers = {0, 2}}});
  EXPECT_NE(job.workers.at(1).error.find("rank 1: its weights are not those of the other ranks"), std::string::npos);
  expect_same_bits(alone.survivor().state, job.workers.at(2).state);
  expect_every_sample_once(job);
}

// GPUs without --deterministic do so.
class WaveringTraining : public ElasticTraining {
 protected:
  WaveringTraining() {
    wavers_ = true;
    options_.same_bits = false;
    options_.warm_up = true;
  }
};

TEST_F(WaveringTraining, StaysOneModelWhoeverIsLost) {
  EXPECT_NE(undisturbed().survivor().state.parameters, undisturbed().survivor().state.parameters);
  for (const Point point : kAllPoints) {
    SCOPED_TRACE(int(point));
    const JobEnd job = run({{.workers = {0, 1, 2}, .until = 20, .killed = 0, .point = point}, {.workers = {1, 2, 3}}});
    for (const auto& [worker, end] : job.workers) {
      EXPECT_EQ(end.error, "") << "worker " << worker;
      const bool was_there = !end.killed && end.result.ended == TrainResult::Ended::done;
      if (was_there) expect_same_bits(job.survivor().state, end.state);
    }
    EXPECT_EQ(job.workers.at(2).state.updates, 10u);
    expect_every_sample_once(job);
  }
}

// Worker 1 takes a step that worker 0 must not take; it takes it later, alone.
TEST_F(WaveringTraining, ReplacesAStateThatWasLeftBehindAtTheSameCursor) {
  const JobEnd job =
      run({{.workers = {0, 1}, .until = 20, .frozen = 0}, {.workers = {0}, .until = 30}, {.workers = {0, 1}}});
  for (const auto& [worker, end] : job.workers) EXPECT_EQ(end.error, "") << "worker " << worker;
  expect_same_bits(job.workers.at(0).state, job.workers.at(1).state);
  expect_every_sample_once(job);
}

// Else a newcomer would be refused for bits that nobody can promise.
TEST_F(WaveringTraining, TellsNobodyWhatTheWarmUpGave) {
  EXPECT_EQ(undisturbed().survivor().probe, "");
  options_.same_bits = true;
  EXPECT_NE(undisturbed().survivor().probe, "");
}

TEST_F(ElasticTraining, GivesTheSameBitsWhenGradientsAreRounded) {
  const JobEnd exact = undisturbed();
  options_.gradient_dtype = backend::DType::bfloat16;
  const JobEnd rounded = undisturbed();
  EXPECT_NE(exact.survivor().state.parameters, rounded.survivor().state.parameters);
  expect_same_run(rounded, run({{.workers = {0, 1, 2}, .until = 30}, {.workers = {1, 2, 3, 4}}}));
}

TEST_F(ElasticTraining, WarmsUpWithoutATrace) {
  const JobEnd cold = undisturbed();
  options_.warm_up = true;
  expect_same_run(cold, run({{.workers = {0, 1}}}));
}

TEST_F(ElasticTraining, WritesTheSameCheckpointsWhoeverIsRankZero) {
  options_.checkpoint_prefix = folder_ / "a" / "m";
  options_.checkpoint_every_steps = 2;
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "b" / "m";
  JobEnd job = run({{.workers = {0, 1}, .until = 10, .killed = 0, .point = Point::after_apply},
                    {.workers = {1, 2}, .until = 45},
                    {.workers = {2, 1}}});
  expect_same_run(alone, job);
  // A new rank 0 may name the end of the epoch again, which it kept a copy of and finds written.
  const auto repeated = std::ranges::unique(job.log.checkpoints);
  job.log.checkpoints.erase(repeated.begin(), repeated.end());
  EXPECT_EQ(job.log.checkpoints, alone.log.checkpoints);
  for (const CheckpointName& name : list_checkpoints(folder_ / "a" / "m")) {
    CheckpointName other = name;
    other.prefix = folder_ / "b" / "m";
    EXPECT_EQ(state_sha256(load_checkpoint_file(name.stem() + ".json")),
              state_sha256(load_checkpoint_file(other.stem() + ".json")));
  }
}

TEST_F(ElasticTraining, ConsumesEverySampleOncePerEpochWhenTheBatchFollowsTheWorkers) {
  options_.elastic_batch = ElasticBatch::per_worker;
  options_.worker_batch = 4;
  options_.global_batch = 8;
  const JobEnd job = run({{.workers = {0, 1}, .until = 8},
                          {.workers = {0, 1, 2}, .until = 20, .killed = 1, .point = Point::after_apply},
                          {.workers = {0, 2}, .until = 45, .at_epoch_end = true},
                          {.workers = {0, 2, 3, 4, 5}, .until = 70, .killed = 0, .point = Point::reducing},
                          {.workers = {2, 3, 4, 5}}});
  expect_every_sample_once(job);
  EXPECT_EQ(job.survivor().result.cursor.samples_seen, 2u * kTinySamples);
  EXPECT_EQ(job.log.epochs.size(), 2u);
  EXPECT_EQ(job.log.steps.back().samples_seen, 2u * kTinySamples);
}

TEST_F(ElasticTraining, LetsTheLearningRateFollowTheBatch) {
  options_.elastic_batch = ElasticBatch::per_worker;
  options_.worker_batch = 3;
  options_.global_batch = 3;
  options_.schedule.base = 0.01;
  const JobEnd job = run({{.workers = {0}, .until = 9}, {.workers = {0, 1, 2}}});
  // Three steps alone, then gamma = 1 + 2 * t / 8.
  for (std::size_t step = 0; step < job.log.steps.size(); ++step) {
    const double gamma = step < 3 ? 1 : std::min(3.0, 1 + 2.0 * static_cast<double>(step - 3) / 8);
    EXPECT_DOUBLE_EQ(job.log.steps[step].learning_rate, 0.01 * gamma);
  }
}

TEST_F(ElasticTraining, ResumesInTheMiddleOfARamp) {
  options_.elastic_batch = ElasticBatch::per_worker;
  options_.worker_batch = 3;
  options_.global_batch = 3;
  const JobEnd through = run({{.workers = {0}, .until = 9}, {.workers = {0, 1, 2}}});
  options_.checkpoint_prefix = folder_ / "m";
  run({{.workers = {0}, .until = 9}, {.workers = {0, 1, 2}, .until = 36, .stops = true}});
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "m").at(0).stem() + ".json");
  const JobEnd resumed = run({{.workers = {0, 1, 2}}}, {{0, &saved}, {1, &saved}, {2, &saved}});
  expect_same_bits(through.survivor().state, resumed.survivor().state);
}

}  // namespace
}  // namespace dtrain::train
