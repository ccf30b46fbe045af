// The best epoch of a run, and evaluations that come behind the checkpoint of their epoch.
#include <set>

#include <dtrain/train/run_ends.hpp>

#include "train/elastic_run.hpp"

namespace dtrain::train {
namespace {

class HeardAccuracies final : public IgnoringObserver {
 public:
  void on_evaluation(const EvaluationReport& report) override {
    epochs.push_back(report.epoch);
    best = after_evaluation(best, report);
  }
  void on_note(const std::string& text) override { notes.push_back(text); }
  std::vector<std::uint32_t> epochs;
  BestEpoch best;
  std::vector<std::string> notes;
};

class BestEpochs : public TinyTraining {
 protected:
  BestEpochs() {
    options_.checkpoint_prefix = folder_ / "m";
    options_.schedule.base = 0.3;
  }
  // To so many complete epochs.
  TrainResult go_on(std::uint32_t epochs, const Checkpoint* start, Observer& observer) {
    options_.epochs = epochs;
    options_.resumes = start != nullptr;
    const auto executable = compile(*backend::make_reference_backend());
    data::Loader training = loader(), validation = loader(false);
    return train(tiny_network(), *executable, training, &validation,
                 *elastic::make_fixed_membership(comm::make_single()), options_, start, observer);
  }
  Checkpoint saved(std::uint32_t epoch) const { return load_checkpoint(*options_.checkpoint_prefix, epoch); }
  std::set<std::uint32_t> epochs_on_disk() const {
    std::set<std::uint32_t> epochs;
    for (const CheckpointName& name : list_checkpoints(*options_.checkpoint_prefix)) epochs.insert(name.epoch);
    return epochs;
  }
};

TEST_F(BestEpochs, AreFollowedByARunThatDoesNotChoose) {
  HeardAccuracies heard;
  for (std::uint32_t epochs = 1; epochs <= 4; ++epochs) {
    const auto start = epochs == 1 ? std::nullopt : std::optional(saved(epochs - 1));
    go_on(epochs, start ? &*start : nullptr, heard);
    const BestEpoch best = saved(epochs).best;
    EXPECT_EQ(best.accuracy, heard.best.accuracy);
    EXPECT_EQ(best.epoch, heard.best.epoch);
    EXPECT_EQ(best.since, 0u);
    EXPECT_FALSE(best.is_due);
    ASSERT_TRUE(best.data);
    EXPECT_EQ(best.data->samples, std::uint64_t{kTinySamples});
    EXPECT_FALSE(best.data->records.sizes.empty());
  }
  EXPECT_TRUE(heard.notes.empty());
}

TEST_F(BestEpochs, OfTheRunBeforeStayThoughItDidNotChoose) {
  HeardAccuracies heard;
  go_on(3, nullptr, heard);
  Checkpoint start = saved(3);
  start.best.accuracy = 2;  // so that none is better
  start.best.epoch = 2;
  options_.keep_checkpoints = 1;
  options_.keep_best = true;
  go_on(5, &start, heard);
  EXPECT_EQ(epochs_on_disk(), (std::set<std::uint32_t>{2, 5}));
  EXPECT_EQ(saved(5).best.epoch, 2u);
}

// One of the epochs before may be the best.
TEST_F(BestEpochs, ThatAreNotKnownStay) {
  HeardAccuracies heard;
  go_on(3, nullptr, heard);
  Checkpoint start = saved(3);
  start.best = {};
  options_.keep_checkpoints = 1;
  options_.keep_best = true;
  go_on(5, &start, heard);
  ASSERT_EQ(heard.notes.size(), 1u);
  EXPECT_NE(heard.notes[0].find("the checkpoints of the epochs before stay"), std::string::npos) << heard.notes[0];
  const Checkpoint fifth = saved(5);
  EXPECT_EQ(fifth.best.since, 3u);
  std::set<std::uint32_t> expected = {1, 2, 3, 5, fifth.best.epoch};
  EXPECT_EQ(epochs_on_disk(), expected);
  go_on(6, &fifth, heard);
  expected = {1, 2, 3, 6, saved(6).best.epoch};
  EXPECT_EQ(epochs_on_disk(), expected) << "the next run forgot it";
}

TEST_F(BestEpochs, DoNotComeFromOtherValidationData) {
  HeardAccuracies heard;
  go_on(2, nullptr, heard);
  Checkpoint start = saved(2);
  start.best.accuracy = 2;
  start.best.data->samples = 44;
  options_.early_stop = 1;
  go_on(3, &start, heard);
  EXPECT_EQ(heard.epochs, (std::vector<std::uint32_t>{0, 1, 2})) << "an accuracy of other data stopped it";
  EXPECT_EQ(saved(3).best.epoch, 3u);
  EXPECT_EQ(saved(3).best.data->samples, std::uint64_t{kTinySamples});
  ASSERT_EQ(heard.notes.size(), 1u);
  EXPECT_NE(heard.notes[0].find("has 45 samples, not the 44 of the checkpoint"), std::string::npos) << heard.notes[0];
}

// The run before ended between save and evaluation.
TEST_F(BestEpochs, KnowAnEvaluationThatWasDue) {
  HeardAccuracies undisturbed, heard;
  go_on(3, nullptr, undisturbed);
  const BestEpoch second = saved(2).best;
  Checkpoint start = saved(2);
  start.best = {.accuracy = -1, .is_due = true, .data = start.best.data};
  save_checkpoint({*options_.checkpoint_prefix, 2}, start);
  const TrainResult over = go_on(2, &start, heard);
  EXPECT_EQ(heard.epochs, (std::vector<std::uint32_t>{1})) << "nothing is left to train";
  ASSERT_TRUE(over.evaluation);
  EXPECT_EQ(over.cursor, start.cursor);
  BestEpoch found = saved(2).best;
  EXPECT_FALSE(found.is_due);
  EXPECT_EQ(found.accuracy, over.evaluation->accuracy);
  EXPECT_EQ(state_sha256(saved(2)), state_sha256(start));
  found.since = 0;
  if (second.epoch == 2) {
    EXPECT_EQ(found, second);
  }
  heard = {};
  save_checkpoint({*options_.checkpoint_prefix, 2}, start);
  go_on(3, &start, heard);
  EXPECT_EQ(heard.epochs, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(saved(2).best.epoch, 2u) << "its manifest has it too";
}

TEST_F(BestEpochs, MayEndARunWithAnEvaluationThatWasDue) {
  HeardAccuracies heard;
  go_on(2, nullptr, heard);
  Checkpoint start = saved(2);
  start.best = {.accuracy = 2, .epoch = 1, .is_due = true, .data = start.best.data};
  options_.early_stop = 1;
  heard = {};
  const TrainResult over = go_on(9, &start, heard);
  EXPECT_EQ(heard.epochs, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(over.cursor, start.cursor);
  ASSERT_EQ(heard.notes.size(), 2u) << "that it is done first, and the early stop";
}

TEST_F(BestEpochs, AreNoneWithoutValidation) {
  HeardAccuracies heard;
  const auto executable = compile(*backend::make_reference_backend());
  data::Loader training = loader();
  train(tiny_network(), *executable, training, nullptr, *elastic::make_fixed_membership(comm::make_single()), options_,
        nullptr, heard);
  EXPECT_EQ(saved(2).best, BestEpoch{});
}

// All workers die while they evaluate the first epoch, and others go on.
TEST_F(ElasticTraining, AnEvaluationThatNoWorkerSurvivesIsMadeUpFor) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "m";
  on_point_ = [](int, Point point, std::uint64_t) {
    if (point == Point::evaluating) throw Killed();
  };
  const JobEnd died = run({{.workers = {0, 1}}});
  on_point_ = {};
  for (const auto& [worker, end] : died.workers) EXPECT_TRUE(end.killed) << "worker " << worker;
  const Checkpoint first = load_checkpoint(folder_ / "m", 1);
  EXPECT_TRUE(first.best.is_due);
  // Once without a loss, and once where a worker dies in this evaluation too.
  const Script scripts[] = {
      {{.workers = {2, 3}}},
      {{.workers = {2, 3}, .until = 45, .killed = 3, .point = Point::evaluating}, {.workers = {2, 4}}},
      {{.workers = {2, 3}, .until = 45, .killed = 2, .point = Point::evaluating}, {.workers = {3, 4}}}};
  for (const Script& script : scripts) {
    save_checkpoint({folder_ / "m", 1}, first);
    const JobEnd job = run(script, {{2, &first}, {3, &first}, {4, &first}});
    for (const auto& [worker, end] : job.workers) EXPECT_EQ(end.error, "") << "worker " << worker;
    expect_same_bits(alone.survivor().state, job.survivor().state);
    ASSERT_EQ(job.log.evaluations.size(), 2u);
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
      EXPECT_EQ(job.log.evaluations[epoch].epoch, epoch);
      EXPECT_EQ(job.log.evaluations[epoch].loss, alone.log.evaluations[epoch].loss);
    }
    EXPECT_FALSE(load_checkpoint(folder_ / "m", 1).best.is_due);
    EXPECT_FALSE(load_checkpoint(folder_ / "m", 2).best.is_due);
  }
}

// The next rank 0 writes what the one before it found, or left open.
TEST_F(ElasticTraining, NoEvaluationStaysDueWithTheRankZeroThatSaved) {
  for (const Point point : {Point::evaluating, Point::telling, Point::reducing, Point::after_apply}) {
    SCOPED_TRACE(int(point));
    options_.checkpoint_prefix = folder_ / std::to_string(int(point)) / "m";
    run({{.workers = {0, 1}, .until = 45, .killed = 0, .point = point}, {.workers = {1, 2}}});
    for (const std::uint32_t epoch : {1u, 2u})
      EXPECT_FALSE(load_checkpoint(*options_.checkpoint_prefix, epoch).best.is_due) << epoch;
  }
}

}  // namespace
}  // namespace dtrain::train
