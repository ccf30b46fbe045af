// Trainings by parameter servers, over real connections of this machine, under joins, leaves and deaths.
#include "../elastic_run.hpp"

namespace dtrain::train {
namespace {

class ServerRun : public ElasticTraining {
 protected:
  ServerRun() {
    options_.servers = {.servers = 2, .secret = "a secret of this test"};
    options_.logical_shards = 4;
    options_.schedule.base = 0.01;
  }

  JobEnd without_servers() {
    const ParameterServers servers = std::exchange(options_.servers, {});
    JobEnd end = undisturbed();
    options_.servers = servers;
    return end;
  }

  // Of three workers, with a newcomer.
  static std::vector<int> others_of(int killed) {
    std::vector<int> workers = {0, 1, 2, 3};
    std::erase(workers, killed);
    return workers;
  }

  // All that stay end in one state.
  static void expect_one_state(const JobEnd& job) {
    for (const auto& [worker, end] : job.workers) {
      EXPECT_EQ(end.error, "") << "worker " << worker;
      if (!end.killed && end.result.ended == TrainResult::Ended::done)
        expect_same_bits(job.survivor().state, end.state);
    }
  }
};

class Synchronous : public ServerRun {
 protected:
  Synchronous() { options_.servers.max_staleness = 0; }
};

TEST_F(Synchronous, HasTheBitsOfATrainingWithoutServers) {
  for (const auto kind : {nn::OptimizerKind::sgd, nn::OptimizerKind::adam, nn::OptimizerKind::lamb}) {
    options_.optimizer = nn::with_kind(options_.optimizer, kind);
    const JobEnd alone = without_servers();
    for (const int workers : {1, 2, 3}) {
      for (const int servers : {1, 2, 3}) {
        SCOPED_TRACE(testing::Message() << workers << " workers, " << servers << " servers");
        options_.servers.servers = servers;
        ScriptedGeneration all;
        for (int worker = 0; worker < workers; ++worker) all.workers.push_back(worker);
        expect_same_run(alone, run({all}));
      }
    }
  }
}

TEST_F(Synchronous, EveryRecipeKeepsTheBits) {
  options_.servers.servers = 1;  // the norm of all gradients
  use_every_recipe();
  expect_same_run(without_servers(), run({{.workers = {0, 1, 2}}}));
}

// The run before it had other batches, which end amid those of this one.
TEST_F(Synchronous, ResumesAmidABatchWithTheBitsOfATrainingWithoutServers) {
  const ParameterServers servers = std::exchange(options_.servers, {});
  options_.checkpoint_prefix = folder_ / "m";
  options_.global_batch = 8;
  run({{.workers = {0}, .until = 16, .stops = true}});
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "m").at(0).stem() + ".json");
  ASSERT_EQ(saved.cursor.position, 16u);
  options_.checkpoint_prefix.reset();
  options_.global_batch = 10;
  const JobEnd alone = run({{.workers = {0}}}, {{0, &saved}});
  options_.servers = servers;
  const JobEnd job =
      run({{.workers = {0, 1}, .until = 26}, {.workers = {0, 1, 2}}}, {{0, &saved}, {1, &saved}, {2, &saved}});
  expect_one_state(job);
  expect_same_bits(alone.survivor().state, job.survivor().state);
  expect_same_log(alone.log, job.log);
  for (std::size_t i = 0; i < std::min(alone.log.steps.size(), job.log.steps.size()); ++i) {
    EXPECT_EQ(job.log.steps[i].step, alone.log.steps[i].step);
    EXPECT_EQ(job.log.steps[i].learning_rate, alone.log.steps[i].learning_rate);
  }
}

TEST_F(Synchronous, JoinsAndLeavesKeepTheBits) {
  expect_same_run(without_servers(),
                  run({{.workers = {0}, .until = 20}, {.workers = {0, 1, 2}, .until = 65}, {.workers = {2, 3}}}));
}

TEST_F(Synchronous, AWorkerThatDiesChangesNoBit) {
  const JobEnd alone = without_servers();
  for (const int killed : {0, 1, 2}) {
    for (const Point point : kAllPoints) {
      SCOPED_TRACE(testing::Message() << "worker " << killed << ", point " << int(point));
      const JobEnd job =
          run({{.workers = {0, 1, 2}, .until = 20, .killed = killed, .point = point}, {.workers = others_of(killed)}});
      expect_one_state(job);
      expect_same_bits(alone.survivor().state, job.survivor().state);
      expect_every_sample_once(job);
    }
  }
}

class Asynchronous : public ServerRun {
 protected:
  Asynchronous() {
    options_.worker_batch = 5;
    options_.same_bits = false;
  }
};

TEST_F(Asynchronous, OneWorkerIsATrainingOfItsBatches) {
  const JobEnd job = run({{.workers = {0}}});
  options_.servers = {};
  options_.global_batch = options_.worker_batch;
  options_.logical_shards = 1;
  expect_same_run(undisturbed(), job);
}

TEST_F(Asynchronous, WorkersShareAnEpochAndEndInOneState) {
  for (const std::optional<int> staleness : {std::optional<int>(), std::optional<int>(1), std::optional<int>(3)}) {
    options_.servers.max_staleness = staleness;
    const JobEnd job = run({{.workers = {0, 1, 2}}});
    expect_one_state(job);
    expect_every_sample_once(job);
    EXPECT_EQ(job.log.steps.size(), 2u * 9);
    EXPECT_EQ(job.log.epochs.size(), 2u);
    EXPECT_EQ(job.log.steps.back().samples_seen, 2u * kTinySamples);
    EXPECT_EQ(job.survivor().state.updates, 2u * 9);
  }
}

// Worker 1 computes for long; the others take its share of the epoch.
TEST_F(Asynchronous, ASlowWorkerTakesFewerBatches) {
  std::map<int, std::atomic<int>> steps;
  for (const int worker : {0, 1}) steps[worker] = 0;
  on_point_ = [&](int worker, Point point, std::uint64_t) {
    if (point != Point::computing) return;
    ++steps.at(worker);
    if (worker == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  };
  expect_every_sample_once(run({{.workers = {0, 1}}}));
  EXPECT_LT(steps.at(1), steps.at(0));
}

// ... unless they may not be ahead of it.
TEST_F(Asynchronous, ABoundHoldsTheFastWorkers) {
  options_.servers.max_staleness = 1;
  options_.epochs = 1;
  std::map<int, std::atomic<int>> steps;
  for (const int worker : {0, 1}) steps[worker] = 0;
  std::atomic<int> most_ahead = 0;
  on_point_ = [&](int worker, Point point, std::uint64_t) {
    if (point != Point::computing) return;
    ++steps.at(worker);
    if (worker == 0) most_ahead = std::max(most_ahead.load(), steps.at(0) - steps.at(1));
    if (worker == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  };
  expect_every_sample_once(run({{.workers = {0, 1}}}));
  // One step, the one that is begun, and at the end two batches that are taken already; without a bound it is 6.
  EXPECT_LE(most_ahead, 4);
}

TEST_F(Asynchronous, JoinsAndLeavesLoseNoSample) {
  const JobEnd job = run({{.workers = {0}, .until = 10}, {.workers = {0, 1, 2}, .until = 60}, {.workers = {2, 3}}});
  expect_one_state(job);
  expect_every_sample_once(job);
}

TEST_F(Asynchronous, ADeadWorkersSamplesAreTakenByOthers) {
  for (const int killed : {0, 1, 2}) {
    for (const Point point : kAllPoints) {
      SCOPED_TRACE(testing::Message() << "worker " << killed << ", point " << int(point));
      const JobEnd job =
          run({{.workers = {0, 1, 2}, .until = 15, .killed = killed, .point = point}, {.workers = others_of(killed)}});
      expect_one_state(job);
      expect_every_sample_once(job);
      EXPECT_EQ(job.log.warnings, std::vector<std::string>()) << "no shard is lost with one worker";
    }
  }
}

// A server dies, and the worker that keeps its replica is gone as well.
TEST_F(Asynchronous, WithoutAReplicaTheWorkersGoBackToTheirLastCommonState) {
  const JobEnd job =
      run({{.workers = {0, 1, 2}, .until = kTinySamples, .killed = 0, .point = Point::computing}, {.workers = {2, 3}}});
  expect_one_state(job);
  expect_every_sample_once(job);
  ASSERT_EQ(job.log.warnings.size(), 1u);
  EXPECT_NE(job.log.warnings[0].find("lost together with its replica: epoch 1 goes on from step 0"), std::string::npos)
      << job.log.warnings[0];
}

TEST_F(Asynchronous, SavesWithinAnEpochAndResumes) {
  options_.checkpoint_prefix = folder_ / "m";
  options_.checkpoint_every_steps = 4;
  const JobEnd first = run({{.workers = {0, 1, 2}, .until = 20, .stops = true}});
  const std::vector<CheckpointName> names = list_checkpoints(folder_ / "m");
  ASSERT_FALSE(names.empty());
  const Checkpoint saved = load_checkpoint_file(names.front().stem() + ".json");
  EXPECT_EQ(saved.cursor.position % 5, 0u);
  EXPECT_GE(saved.cursor.position, 20u);
  EXPECT_EQ(saved.state.optimizer.size(), saved.state.parameters.size());
  const JobEnd second = run({{.workers = {0, 1}}}, {{0, &saved}, {1, &saved}});
  expect_one_state(second);
  EXPECT_EQ(second.log.steps.back().samples_seen, 2u * kTinySamples);
}

// The ledger's steps are those of the run, though batches are numbered by their samples.
TEST_F(Asynchronous, ResumedWithAnotherBatchTheLedgerHasEachSampleOnce) {
  options_.checkpoint_prefix = folder_ / "m";
  const ParameterServers servers = std::exchange(options_.servers, {});
  const JobEnd first = run({{.workers = {0}, .until = 20, .stops = true}});
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "m").at(0).stem() + ".json");
  ASSERT_EQ(saved.cursor.step, 2u);
  ASSERT_EQ(saved.cursor.position, 20u);
  options_.servers = servers;
  options_.checkpoint_prefix.reset();
  std::vector<std::uint32_t> all(kTinySamples);
  for (std::uint32_t id = 0; id < kTinySamples; ++id) all[id] = id;
  for (const int batch : {5, 15}) {
    SCOPED_TRACE(testing::Message() << "batch " << batch);
    options_.worker_batch = batch;
    const JobEnd second =
        run({{.workers = {0, 1, 2}, .until = 30, .killed = 0, .point = Point::computing}, {.workers = others_of(0)}},
            {{0, &saved}, {1, &saved}, {2, &saved}, {3, &saved}});
    expect_one_state(second);
    ASSERT_FALSE(second.ledger.steps.empty());
    EXPECT_EQ(second.ledger.steps.begin()->first, Ledger::Step(0, 2));
    std::vector<std::uint32_t> of_epoch = first.ledger.epoch(0);
    const std::vector<std::uint32_t> resumed = second.ledger.epoch(0);
    of_epoch.insert(of_epoch.end(), resumed.begin(), resumed.end());
    std::ranges::sort(of_epoch);
    EXPECT_EQ(of_epoch, all);
    EXPECT_EQ(second.ledger.epoch(1), all);
    EXPECT_EQ(second.ledger.missing(), (std::map<std::uint32_t, std::uint64_t>()));
  }
}

TEST_F(Asynchronous, NamesTheStepWhoseLossIsNotFinite) {
  options_.schedule.base = 1e30;
  const JobEnd job = run({{.workers = {0}}});
  EXPECT_NE(job.workers.at(0).error.find("the loss is not finite at epoch 0 step"), std::string::npos)
      << job.workers.at(0).error;
}

}  // namespace
}  // namespace dtrain::train
