#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <functional>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/initialize.hpp>
#include <dtrain/train/ledger.hpp>
#include <dtrain/train/trainer.hpp>

#include "common/replay_device.hpp"
#include "common/small_files.hpp"
#include "train/tiny_training.hpp"

namespace dtrain::train {
namespace {

class Trainer : public TinyTraining {
 protected:
  struct Outcome {
    backend::ModelState state;
    TrainResult result;
  };

  // The run of one rank of a membership that does not change.
  Outcome train_rank(const backend::Backend& backend, std::unique_ptr<comm::Communicator> comm, Observer& observer,
                     const Checkpoint* start = nullptr) const {
    const nn::Graph graph = tiny_network();
    const auto executable = compile(backend);
    data::Loader training = loader();
    const auto membership = elastic::make_fixed_membership(std::move(comm));
    TrainResult result = train(graph, *executable, training, nullptr, *membership, options_, start, observer);
    return {executable->read_state(), std::move(result)};
  }

  Outcome train_alone(Observer& observer, const Checkpoint* start = nullptr) const {
    return train_rank(*backend::make_reference_backend(), comm::make_single(), observer, start);
  }
  backend::ModelState train_alone(const Checkpoint* start = nullptr) const {
    IgnoringObserver observer;
    return train_alone(observer, start).state;
  }

  std::vector<backend::ModelState> train_world(const backend::Backend& backend, int ranks,
                                               const Checkpoint* start = nullptr) const {
    auto world = comm::make_local_world(ranks);
    std::vector<backend::ModelState> states(world.size());
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < world.size(); ++rank) {
      threads.emplace_back([&, rank] {
        IgnoringObserver observer;
        states[rank] = train_rank(backend, std::move(world[rank]), observer, start).state;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return states;
  }
};

// Raises a signal after a number of steps, as a person's Ctrl-C would.
class StopAfter final : public IgnoringObserver {
 public:
  explicit StopAfter(int steps) : left_(steps) { watch_stop_signals(); }
  void on_step(const StepReport&) override {
    if (--left_ == 0) std::raise(SIGINT);
  }

 private:
  int left_;
};

class Losses final : public IgnoringObserver {
 public:
  void on_epoch(const EpochReport& report) override { losses.push_back(report.loss); }
  void on_evaluation(const EvaluationReport& report) override { evaluated.push_back(report.loss); }
  void on_note(const std::string& text) override { notes.push_back(text); }
  void on_warning(const std::string& text) override { warnings.push_back(text); }
  std::vector<double> losses, evaluated;
  std::vector<std::string> notes, warnings;
};

class LastStep final : public IgnoringObserver {
 public:
  void on_step(const StepReport& step) override { report = step; }
  StepReport report;
};

// Fails a run at its third step, on a disk that has been full for the ledger since before the first.
class FailsOnAFullDisk final : public IgnoringObserver {
 public:
  explicit FailsOnAFullDisk(bool room_at_last) : room_at_last_(room_at_last) { disk_.limit(10); }
  void on_step(const StepReport&) override {
    if (++steps_ < 3) return;
    if (room_at_last_) disk_.lift();
    throw Error("the end");
  }
  void on_warning(const std::string& text) override {
    warnings.push_back(text);
    if (steps_ == 3) throw Error("a complaint instead of the end");
  }
  std::vector<std::string> warnings;

 private:
  const SmallFiles disk_;
  bool room_at_last_;
  int steps_ = 0;
};

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(Trainer, WritesTheLedgerLinesThatWereKeptAlsoWhenAnErrorEndsTheRun) {
  options_.ledger = LedgerOptions{folder_ / "ledger", "w"};
  FailsOnAFullDisk fails(true);
  EXPECT_EQ(error_of([&] { train_alone(fails); }), "the end");
  EXPECT_EQ(fails.warnings.size(), 1u);
  EXPECT_GE(read_ledger(folder_ / "ledger").epoch(0).size(), 3 * 10u);
}

TEST_F(Trainer, EndsWithTheErrorThatEndedItWhereTheLedgerIsLostToo) {
  options_.ledger = LedgerOptions{folder_ / "ledger", "w"};
  FailsOnAFullDisk fails(false);
  EXPECT_EQ(error_of([&] { train_alone(fails); }), "the end");
  ASSERT_EQ(fails.warnings.size(), 2u);
  EXPECT_NE(fails.warnings[1].find("the last lines are lost"), std::string::npos);
}

// Gradients of float16 overflow at first: all ranks must judge so, and halve the scale together.
TEST_F(Trainer, GivesTheSameBitsInFloat16WithOneAndTwoRanksThroughOverflows) {
  dtype_ = backend::DType::float16;
  options_.dtype = backend::DType::float16;
  Checkpoint start;
  start.graph = tiny_network();
  start.state.parameters.resize(static_cast<std::size_t>(start.graph.parameter_count));
  start.state.statistics.resize(static_cast<std::size_t>(start.graph.statistic_count));
  start.state.optimizer.resize(start.state.parameters.size());
  nn::initialize_parameters(start.graph, 3, start.state.parameters);
  nn::initialize_statistics(start.graph, start.state.statistics);
  start.state.loss_scale = {0x1p18f, 5};
  const auto backend = backend::cuda::make_large_replay_backend();
  const backend::ModelState alone = train_world(*backend, 1, &start).at(0);
  EXPECT_LT(alone.loss_scale.value, 0x1p17f);
  EXPECT_GT(alone.updates, 0u);
  EXPECT_LT(alone.updates, 10u) << "a step that overflowed moved something";
  for (const backend::ModelState& state : train_world(*backend, 2, &start)) expect_same_bits(state, alone);
}

// What the program does on a GPU: bytes in the device's memory, the next batch on its way while one is computed.
TEST_F(Trainer, GivesTheSameBitsFromBytesThatWereStagedAsFromFloats) {
  const auto backend = backend::cuda::make_large_replay_backend();
  ASSERT_TRUE(backend->batches().as_bytes);
  Losses losses[2];
  backend::ModelState states[2];
  for (const bool as_bytes : {false, true}) {
    const backend::BatchWish wish = as_bytes ? backend->batches() : backend::BatchWish{};
    const nn::Graph graph = tiny_network();
    const auto executable = compile(*backend);
    data::Loader training = loader(true, wish), validation = loader(false, wish);
    train(graph, *executable, training, &validation, *elastic::make_fixed_membership(comm::make_single()), options_,
          nullptr, losses[as_bytes]);
    states[as_bytes] = executable->read_state();
  }
  expect_same_bits(states[1], states[0]);
  EXPECT_EQ(losses[1].evaluated, losses[0].evaluated);
  EXPECT_FALSE(losses[1].evaluated.empty());
}

TEST_F(Trainer, GivesTheSameBitsWithOneTwoThreeAndFiveRanksOnEveryBackend) {
  for (const auto& backend :
       {backend::make_reference_backend(), backend::make_cpu_backend(), backend::cuda::make_large_replay_backend()}) {
    const backend::ModelState alone = train_world(*backend, 1).at(0);
    for (int ranks : {2, 3, 5}) {
      for (const backend::ModelState& state : train_world(*backend, ranks)) {
        SCOPED_TRACE(backend->name() + " with " + std::to_string(ranks) + " ranks");
        expect_same_bits(alone, state);
      }
    }
  }
}

TEST_F(Trainer, GivesTheSameBitsWithEveryRecipeOnAnyNumberOfRanks) {
  const backend::ModelState plain = train_alone();
  use_every_recipe();
  for (const auto& backend :
       {backend::make_reference_backend(), backend::make_cpu_backend(), backend::cuda::make_large_replay_backend()}) {
    const backend::ModelState alone = train_world(*backend, 1).at(0);
    EXPECT_EQ(alone.average.size(), alone.parameters.size() + alone.statistics.size());
    EXPECT_NE(alone.parameters, plain.parameters);
    for (int ranks : {2, 3}) {
      for (const backend::ModelState& state : train_world(*backend, ranks)) {
        SCOPED_TRACE(backend->name() + " with " + std::to_string(ranks) + " ranks");
        expect_same_bits(alone, state);
      }
    }
  }
}

TEST_F(Trainer, GoesOnWithEveryRecipeAfterAStopAsIfNothingHadHappened) {
  use_every_recipe();
  const backend::ModelState undisturbed = train_alone();
  options_.checkpoint_prefix = folder_ / "stop" / "m";
  StopAfter stop(3);
  train_alone(stop);
  reset_stop_signal();
  const Checkpoint newest =
      load_checkpoint_file(list_checkpoints(*options_.checkpoint_prefix).front().stem() + ".json");
  EXPECT_FALSE(newest.state.average.empty());
  expect_same_bits(undisturbed, train_alone(&newest));
}

// Each of them does something, and mixing alone changes no weight's first step but by what it shows.
TEST_F(Trainer, EachRecipeChangesTheRun) {
  const backend::ModelState plain = train_alone();
  options_.mix.mixup = 1;
  EXPECT_NE(train_alone().parameters, plain.parameters);
  options_.mix = {.cutmix = 1};
  EXPECT_NE(train_alone().parameters, plain.parameters);
  options_.mix = {};
  options_.optimizer.clip_norm = 1e-3f;
  EXPECT_NE(train_alone().parameters, plain.parameters);
  options_.optimizer.clip_norm = 1e6f;
  options_.optimizer.average = 0.5f;
  EXPECT_EQ(train_alone().parameters, plain.parameters);
}

TEST_F(Trainer, EvaluatesTheAverageOfTheWeights) {
  options_.optimizer.average = 0.9f;
  const nn::Graph graph = tiny_network();
  const auto executable = compile(*backend::make_reference_backend());
  data::Loader training = loader(), validation = loader(false);
  Losses observer;
  train(graph, *executable, training, &validation, *elastic::make_fixed_membership(comm::make_single()), options_,
        nullptr, observer);
  const auto loss = [&] {
    return evaluate(graph, *executable, validation, options_.evaluation_block, 1, *comm::make_single()).loss;
  };
  EXPECT_NE(loss(), observer.evaluated.back());
  executable->exchange_average();
  EXPECT_EQ(loss(), observer.evaluated.back());
}

// One step of plain SGD moves the weights by the gradient times the rate, which says how long the gradient is.
TEST_F(Trainer, MeasuresTheGradientBeforeItIsCutOnAnyNumberOfRanks) {
  options_.epochs = 1;
  options_.global_batch = kTinySamples;
  options_.optimizer.weight_decay = 0;
  std::vector<float> before(static_cast<std::size_t>(tiny_network().parameter_count));
  nn::initialize_parameters(tiny_network(), options_.seed, before);
  LastStep last;
  const backend::ModelState after = train_alone(last).state;
  double squares = 0;
  for (std::size_t i = 0; i < before.size(); ++i) squares += std::pow(after.parameters[i] - before[i], 2);
  EXPECT_NEAR(last.report.gradient_norm * last.report.learning_rate, std::sqrt(squares), 1e-4 * std::sqrt(squares));

  options_.optimizer.clip_norm = static_cast<float>(last.report.gradient_norm) / 100;
  auto world = comm::make_local_world(2);
  LastStep first_rank, second_rank;
  std::thread other([&] { train_rank(*backend::make_reference_backend(), std::move(world[1]), second_rank); });
  train_rank(*backend::make_reference_backend(), std::move(world[0]), first_rank);
  other.join();
  EXPECT_EQ(first_rank.report.gradient_norm, last.report.gradient_norm);
}

// Weights that hardly move never get better.
TEST_F(Trainer, StopsEarlyAfterSoManyEpochsWithoutABetterValidation) {
  options_.epochs = 30;
  options_.early_stop = 2;
  options_.schedule.base = 1e-9;
  options_.checkpoint_prefix = folder_ / "early" / "m";
  const auto run = [&](const Checkpoint* start) {
    const auto executable = compile(*backend::make_reference_backend());
    data::Loader training = loader(), validation = loader(false);
    Losses observer;
    const TrainResult result = train(tiny_network(), *executable, training, &validation,
                                     *elastic::make_fixed_membership(comm::make_single()), options_, start, observer);
    EXPECT_EQ(result.ended, TrainResult::Ended::done);
    EXPECT_EQ(result.cursor.epoch, 3u);
    EXPECT_TRUE(result.saved || start);
    return observer;
  };
  const Losses first = run(nullptr);
  EXPECT_EQ(first.evaluated.size(), 3u);
  EXPECT_TRUE(first.warnings.empty());
  ASSERT_EQ(first.notes.size(), 1u);
  EXPECT_NE(first.notes[0].find("early stop: no validation accuracy of the last 2 epochs"), std::string::npos);
  EXPECT_TRUE(first.notes[0].ends_with("; best: " + CheckpointName{*options_.checkpoint_prefix, 1}.stem()));

  const Checkpoint second = load_checkpoint(*options_.checkpoint_prefix, 2);
  EXPECT_EQ(second.best.epoch, 1u);
  EXPECT_EQ(best_checkpoint(*options_.checkpoint_prefix).epoch, 1u);
  EXPECT_EQ(run(&second).evaluated.size(), 1u) << "it forgot the epochs before the checkpoint";
  const Checkpoint last = load_checkpoint(*options_.checkpoint_prefix, 3);
  EXPECT_TRUE(run(&last).evaluated.empty()) << "it is over";
}

TEST_F(Trainer, LearnsAndDependsOnTheSeed) {
  options_.epochs = 25;
  options_.schedule.base = 0.2;
  Losses observer;
  const backend::ModelState first = train_alone(observer).state;
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
    const TrainResult stopped = train_alone(stop).result;
    EXPECT_EQ(stopped.ended, TrainResult::Ended::stopped);
    EXPECT_TRUE(stopped.saved);
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
  options_.save_patience = std::chrono::milliseconds(0);
  Losses observer;
  train_alone(observer);
  EXPECT_EQ(observer.losses.size(), 2u);
  ASSERT_GE(observer.warnings.size(), 2u);
  EXPECT_NE(observer.warnings[1].find("training goes on"), std::string::npos);
}

TEST_F(Trainer, EvaluatesTheSameForAnyBlockSize) {
  const nn::Graph graph = tiny_network();
  const auto executable = compile(*backend::make_reference_backend());
  executable->write_state(train_alone());
  data::Loader samples = loader(false);
  const EvaluationReport whole = evaluate(graph, *executable, samples, 45, 1, *comm::make_single());
  const EvaluationReport blocks = evaluate(graph, *executable, samples, 7, 1, *comm::make_single());
  EXPECT_EQ(whole.samples, 45u);
  EXPECT_EQ(whole.accuracy, blocks.accuracy);
  EXPECT_NEAR(whole.loss, blocks.loss, 1e-6);
  EXPECT_GT(whole.time.count(), 0);
}

TEST_F(Trainer, EvaluatesWithoutRecordsThatCannotBeRead) {
  const data::RecordFile all(folder_ / "train.rec");
  {
    data::RecordWriter good(folder_ / "good.rec"), damaged(folder_ / "damaged.rec");
    for (std::uint32_t i = 0; i < kTinySamples; ++i) {
      const data::Record record = all.read(i);
      const bool is_bad = i == 3 || (i >= 14 && i < 21);  // one of a block, and a whole one
      damaged.add(i, record.labels.front(), is_bad ? bytes_of("no image") : ByteView(record.payload));
      if (!is_bad) good.add(i, record.labels.front(), record.payload);
    }
    good.finish();
    damaged.finish();
  }
  const nn::Graph graph = tiny_network();
  const auto executable = compile(*backend::make_reference_backend());
  executable->write_state(train_alone());
  const auto report_of = [&](const char* file) {
    data::Loader samples(
        folder_ / file,
        {.shape = kTinyImage, .classes = kTinyClasses, .shuffle = false, .max_bad_records = 8, .leave_out_bad = true});
    return evaluate(graph, *executable, samples, 7, 1, *comm::make_single());
  };
  const EvaluationReport without = report_of("good.rec"), left_out = report_of("damaged.rec");
  EXPECT_EQ(left_out.samples, 37u);
  EXPECT_EQ(left_out.samples, without.samples);
  EXPECT_EQ(left_out.accuracy, without.accuracy);
  EXPECT_NEAR(left_out.loss, without.loss, 1e-6);
}

}  // namespace
}  // namespace dtrain::train
