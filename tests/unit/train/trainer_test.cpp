#include <dtrain/train/trainer.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/random.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/data/image.hpp>

namespace dtrain::train {
namespace {

constexpr nn::Shape kImage{3, 8, 8};
constexpr int kClasses = 4;
constexpr int kSamples = 45;

nn::Graph small_network() {
  nn::GraphBuilder builder("small", kImage);
  int x = builder.add("conv0", nn::Convolution{.out = 8, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1}, {0});
  x = builder.add("bn0", nn::BatchNorm{}, {x});
  x = builder.add("relu0", nn::Activation{}, {x});
  x = builder.add("dropout0", nn::Dropout{0.2f}, {x});
  x = builder.add("pool0", nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {x});
  return builder.finish(builder.add("fc1", nn::Dense{kClasses}, {x}));
}

// Noise whose mean depends on the class, as a file of records; removed at the end.
class Trainer : public testing::Test {
 protected:
  Trainer() : folder_(Path(testing::TempDir()) / ("trainer_test_" + std::to_string(::getpid()))) {
    make_folder(folder_);
    data::RecordWriter writer(folder_ / "train.rec");
    for (std::uint32_t i = 0; i < kSamples; ++i) {
      const int label = static_cast<int>(i % kClasses);
      RandomStream random(7, RandomUse::drawing, i, 0);
      data::Image image{kImage.c, kImage.h, kImage.w, {}};
      for (std::int64_t p = 0; p < kImage.size(); ++p) {
        image.pixels.push_back(static_cast<std::uint8_t>(random.below(150) + static_cast<std::uint32_t>(label) * 30));
      }
      const std::string payload = data::encode_image(image, data::Encoding::raw);
      writer.add(i, static_cast<float>(label), bytes_of(payload));
    }
    writer.finish();
    options_.epochs = 2;
    options_.global_batch = 10;
    options_.logical_shards = 8;
    options_.seed = 3;
  }
  ~Trainer() override {
    std::filesystem::remove_all(folder_);
    reset_stop_signal();
  }

  data::Loader loader(bool shuffle = true) const {
    data::LoaderOptions options;
    options.shape = kImage;
    options.classes = kClasses;
    options.augment = {
        .pad_size = 1, .random_crop = true, .random_mirror = true, .mean = {128, 128, 128}, .std = {60, 60, 60}};
    options.seed = 3;
    options.shuffle = shuffle;
    return data::Loader(folder_ / "train.rec", options);
  }

  // The state after the run of one rank.
  backend::ModelState train_rank(const backend::Backend& backend, comm::Communicator& comm, Observer& observer,
                                 const Checkpoint* start = nullptr) const {
    const nn::Graph graph = small_network();
    const auto executable = backend.compile(graph, {.lanes = 2, .max_samples = options_.global_batch, .top_k = 2});
    data::Loader training = loader();
    train(graph, *executable, training, nullptr, comm, options_, start, observer);
    return executable->read_state();
  }

  backend::ModelState train_alone(const Checkpoint* start = nullptr) const {
    Observer observer;
    return train_rank(*backend::make_reference_backend(), *comm::make_single(), observer, start);
  }

  std::vector<backend::ModelState> train_world(const backend::Backend& backend, int ranks) const {
    auto world = comm::make_local_world(ranks);
    std::vector<backend::ModelState> states(world.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < world.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Observer observer;
        states[rank] = train_rank(backend, *world[rank], observer);
        world[rank]->all_gather({});
      });
    }
    for (std::thread& thread : threads) thread.join();
    return states;
  }

  Path folder_;
  TrainerOptions options_;
};

void expect_same_bits(const backend::ModelState& a, const backend::ModelState& b) {
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.statistics, b.statistics);
  EXPECT_EQ(a.optimizer, b.optimizer);
  EXPECT_EQ(a.updates, b.updates);
}

// Raises a signal after a number of steps, as a person's Ctrl-C would.
class StopAfter final : public Observer {
 public:
  explicit StopAfter(int steps) : left_(steps) { watch_stop_signals(); }
  void on_step(const StepReport&) override {
    if (--left_ == 0) std::raise(SIGINT);
  }

 private:
  int left_;
};

class Losses final : public Observer {
 public:
  void on_epoch(const EpochReport& report) override { losses.push_back(report.loss); }
  void on_warning(const std::string& text) override { warnings.push_back(text); }
  std::vector<double> losses;
  std::vector<std::string> warnings;
};

TEST_F(Trainer, GivesTheSameBitsWithOneTwoThreeAndFiveRanksOnEveryBackend) {
  for (const auto& backend : {backend::make_reference_backend(), backend::make_cpu_backend()}) {
    const backend::ModelState alone = train_world(*backend, 1).at(0);
    for (int ranks : {2, 3, 5}) {
      for (const backend::ModelState& state : train_world(*backend, ranks)) {
        SCOPED_TRACE(backend->name() + " with " + std::to_string(ranks) + " ranks");
        expect_same_bits(alone, state);
      }
    }
  }
}

TEST_F(Trainer, LearnsAndDependsOnTheSeed) {
  options_.epochs = 25;
  options_.schedule.base = 0.2;
  Losses observer;
  const backend::ModelState first = train_rank(*backend::make_reference_backend(), *comm::make_single(), observer);
  EXPECT_LT(observer.losses.back(), 0.8 * observer.losses.front());
  options_.seed = 4;
  EXPECT_NE(first.parameters, train_alone().parameters);
}

TEST_F(Trainer, GoesOnAfterAStopAtAnyStepAsIfNothingHadHappened) {
  const backend::ModelState undisturbed = train_alone();
  for (int steps : {1, 4, 5, 7, 9}) {
    SCOPED_TRACE(steps);
    options_.checkpoint_prefix = folder_ / ("stop" + std::to_string(steps)) / "m";
    StopAfter stop(steps);
    const auto backend = backend::make_reference_backend();
    EXPECT_THROW(train_rank(*backend, *comm::make_single(), stop), Stopped);
    reset_stop_signal();
    const std::vector<CheckpointName> saved = list_checkpoints(*options_.checkpoint_prefix);
    ASSERT_FALSE(saved.empty());
    const Checkpoint newest = load_checkpoint_file(saved.front().stem() + ".json");
    expect_same_bits(undisturbed, train_alone(&newest));
  }
}

TEST_F(Trainer, StopsAtALossThatIsNotFiniteAndNamesStepAndRate) {
  options_.schedule.base = 1e30;
  options_.epochs = 5;
  try {
    train_alone();
    FAIL() << "it trained on";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("epoch 0 step "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("learning rate 1e+30"), std::string::npos) << error.what();
  }
}

TEST_F(Trainer, TrainsOnWhenACheckpointCannotBeWritten) {
  write_file_atomic(folder_ / "file", "in the way");
  options_.checkpoint_prefix = folder_ / "file" / "m";
  Losses observer;
  train_rank(*backend::make_reference_backend(), *comm::make_single(), observer);
  EXPECT_EQ(observer.losses.size(), 2u);
  ASSERT_EQ(observer.warnings.size(), 2u);
  EXPECT_NE(observer.warnings[0].find("training goes on"), std::string::npos);
}

TEST_F(Trainer, EvaluatesTheSameForAnyBlockSize) {
  const nn::Graph graph = small_network();
  const auto executable = backend::make_reference_backend()->compile(graph, {.max_samples = 45, .top_k = 2});
  executable->write_state(train_alone());
  data::Loader samples = loader(false);
  const EvaluationReport whole = evaluate(*executable, samples, 45, *comm::make_single());
  const EvaluationReport blocks = evaluate(*executable, samples, 7, *comm::make_single());
  EXPECT_EQ(whole.samples, 45u);
  EXPECT_EQ(whole.accuracy, blocks.accuracy);
  EXPECT_NEAR(whole.loss, blocks.loss, 1e-6);
}

}  // namespace
}  // namespace dtrain::train
