// Compressed gradients under joins, leaves and deaths: the result has the bits of a run without any. What is held back
// would show in the bits if a worker took it along, or if another one did not send it again.
#include <limits>

#include "../elastic_run.hpp"

namespace dtrain::train {
namespace {

// Steps of 10, 10 | 10, 10 | 5 samples: the windows of an epoch.
class CompressedRun : public ElasticTraining, public testing::WithParamInterface<Compression> {
 protected:
  CompressedRun() {
    options_.compression = {.kind = GetParam(), .threshold = 0.02f, .share = 0.05, .rank = 1, .window = 2};
    options_.schedule.base = 0.02;
    options_.optimizer.momentum = 0.9f;
  }
};
INSTANTIATE_TEST_SUITE_P(Each, CompressedRun,
                         testing::Values(Compression::two_bit, Compression::top_k, Compression::power_sgd),
                         [](const auto& each) {
                           if (each.param == Compression::power_sgd) return "PowerSgd";
                           return each.param == Compression::two_bit ? "TwoBit" : "TopK";
                         });

TEST_P(CompressedRun, AnyNumberOfWorkersEndsInTheSameBits) {
  const JobEnd alone = undisturbed();
  EXPECT_EQ(alone.log.steps.size(), 10u);
  for (const std::vector<int>& workers : std::vector<std::vector<int>>{{0, 1}, {0, 1, 2}, {0, 1, 2, 3, 4, 5, 6}}) {
    expect_same_run(alone, run({{.workers = workers}}));
  }
  options_.compression = {};
  EXPECT_NE(undisturbed().survivor().state.parameters, alone.survivor().state.parameters);
}

TEST_P(CompressedRun, WorkersJoinAndLeaveWhereAWindowEnds) {
  const JobEnd alone = undisturbed();
  // 10 and 30 are inside of windows: the change waits for 20 and 40.
  const JobEnd job = run({{.workers = {0, 1, 2}, .until = 10},
                          {.workers = {1, 2, 3, 4}, .until = 30},
                          {.workers = {4}, .until = 45, .at_epoch_end = true},
                          {.workers = {4, 5}}});
  expect_same_run(alone, job);
  for (const auto& [worker, end] : job.workers) EXPECT_EQ(end.losses, 0) << "worker " << worker;
}

TEST_P(CompressedRun, AWorkerThatDiesTakesOnlyTheWindowWithIt) { expect_no_trace_of_a_death(); }

// Worker 1 is frozen where it reaches the point the second time in the window that begins at 20 samples.
TEST_P(CompressedRun, ALossInsideAWindowLeavesNoTrace) {
  const JobEnd alone = undisturbed();
  for (const Point point : {Point::computing, Point::reducing, Point::before_apply, Point::after_apply}) {
    SCOPED_TRACE(int(point));
    std::atomic<int> reached = 0;
    on_point_ = [&](int worker, Point at, std::uint64_t samples_seen) {
      if (worker == 1 && at == point && samples_seen == 20 && ++reached == 2) throw PeerLost("frozen");
    };
    const JobEnd job = run({{.workers = {0, 1, 2}, .until = 1000}, {.workers = {2, 0, 1}}});
    EXPECT_GE(reached, 2);
    expect_same_run(alone, job);
  }
}

// A shard that moved inside of a window would leave behind what it held back.
TEST_P(CompressedRun, ShardsMoveWhereAWindowEnds) {
  options_.epochs = 10;
  options_.compression.window = 4;
  options_.shard_window = std::chrono::milliseconds(1);
  const JobEnd alone = undisturbed();
  slow_ = {{2, std::chrono::milliseconds(4)}};
  const JobEnd job =
      run({{.workers = {0, 1, 2}, .until = 405, .killed = 0, .point = Point::reducing}, {.workers = {1, 2}}});
  expect_same_run(alone, job);
  EXPECT_FALSE(job.log.shards.empty());
}

TEST_P(CompressedRun, ResumesFromACheckpointWithAnotherNumberOfWorkers) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "m";
  run({{.workers = {0, 1, 2}, .until = 10, .stops = true}});
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "m").at(0).stem() + ".json");
  EXPECT_EQ(saved.cursor.samples_seen, 20u) << "where the window ended";
  const JobEnd second = run({{.workers = {0, 1}}}, {{0, &saved}, {1, &saved}});
  expect_same_bits(alone.survivor().state, second.survivor().state);
}

TEST_P(CompressedRun, SavesWhereAWindowEndsThatHasTheStepInIt) {
  options_.checkpoint_prefix = folder_ / "m";
  options_.checkpoint_every_steps = 3;
  const JobEnd job = run({{.workers = {0, 1}}});
  std::vector<std::uint64_t> seen;
  for (const CheckpointName& name : list_checkpoints(folder_ / "m")) {
    seen.push_back(load_checkpoint_file(name.stem() + ".json").cursor.samples_seen);
  }
  std::ranges::sort(seen);
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{40, 45, 85, 90}));
}

TEST_P(CompressedRun, FollowsTheWorkersToo) {
  options_.elastic_batch = ElasticBatch::per_worker;
  options_.worker_batch = 4;
  options_.global_batch = 8;
  const JobEnd job = run({{.workers = {0, 1}, .until = 8},
                          {.workers = {0, 1, 2}, .until = 20, .killed = 1, .point = Point::reducing},
                          {.workers = {0, 2, 3}}});
  expect_every_sample_once(job);
  EXPECT_EQ(job.survivor().result.cursor.samples_seen, 2u * kTinySamples);
  for (const int worker : {0, 2, 3}) EXPECT_EQ(job.workers.at(worker).error, "");
}

TEST_P(CompressedRun, EveryRecipeKeepsTheBits) {
  options_.mix = {.mixup = 0.8f, .cutmix = 1};
  options_.optimizer.clip_norm = 0.5f;
  options_.optimizer.average = 0.9f;
  options_.compression.window = kCompressionWindow;  // an epoch is one
  const JobEnd alone = undisturbed();
  expect_same_run(alone,
                  run({{.workers = {0, 1}, .until = 45, .killed = 0, .point = Point::computing}, {.workers = {1, 2}}}));
}

// One gradient of the first step is not a number.
class Faulty final : public Around {
 public:
  using Around::Around;
  void enqueue(const backend::HostBatch& batch, std::span<const backend::ShardRange> shards,
               const backend::StepKey& key, backend::StepSink sink) override {
    if (std::exchange(began_, true)) return inner_->enqueue(batch, shards, key, sink);
    Sink faulty(sink.require_host());
    inner_->enqueue(batch, shards, key, faulty);
    inner_->synchronize();
  }

 private:
  class Sink final : public backend::ContributionSink {
   public:
    explicit Sink(backend::ContributionSink& inner) : inner_(inner) {}
    std::span<float> buffer(const backend::ShardRange& shard) override {
      const std::span<float> memory = inner_.buffer(shard);
      const std::lock_guard lock(mutex_);
      return buffers_[shard.index] = memory;
    }
    void ready(const backend::ShardRange& shard, std::int64_t first, std::int64_t size, bool last) override {
      if (first == 0 && shard.index == 0) {
        const std::lock_guard lock(mutex_);
        buffers_.at(0)[0] = std::numeric_limits<float>::quiet_NaN();
      }
      inner_.ready(shard, first, size, last);
    }

   private:
    backend::ContributionSink& inner_;
    std::mutex mutex_;  // guards buffers_
    std::map<int, std::span<float>> buffers_;
  };
  bool began_ = false;
};

// The loss stays finite, because what is sent in its place is 0.
TEST_F(TinyTraining, EndsWithAWindowThatHidesAGradientThatIsNoNumber) {
  options_.compression = {.kind = Compression::two_bit, .window = 2};
  const std::unique_ptr<backend::Backend> backend = make_backend();
  Faulty executable(compile(*backend));
  data::Loader training = loader();
  const auto membership = elastic::make_fixed_membership(comm::make_single());
  IgnoringObserver observer;
  try {
    train(network(), executable, training, nullptr, *membership, options_, nullptr, observer);
    FAIL() << "it trained on";
  } catch (const Diverged& error) {
    EXPECT_NE(std::string(error.what()).find("compression held back is not finite at epoch 0 step 1 "),
              std::string::npos)
        << error.what();
  }
}

// What is sent is no number either, so the weights are none, and the next loss or the end of the epoch shows it.
TEST_F(TinyTraining, EndsWithAGradientThatIsNoNumberAndIsSent) {
  for (const Compression kind : {Compression::top_k, Compression::power_sgd}) {
    SCOPED_TRACE(static_cast<int>(kind));
    options_.compression = {.kind = kind, .window = 2};
    options_.checkpoint_prefix = folder_ / "m";
    const std::unique_ptr<backend::Backend> backend = make_backend();
    Faulty executable(compile(*backend));
    data::Loader training = loader();
    const auto membership = elastic::make_fixed_membership(comm::make_single());
    IgnoringObserver observer;
    EXPECT_THROW(train(network(), executable, training, nullptr, *membership, options_, nullptr, observer), Diverged);
    EXPECT_TRUE(list_checkpoints(folder_ / "m").empty());
  }
}

}  // namespace
}  // namespace dtrain::train
