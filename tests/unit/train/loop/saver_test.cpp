// What becomes of checkpoints that cannot be written, and of those that are no longer wanted.
#include <fcntl.h>

#include <cstdio>
#include <limits>
#include <set>

#include <dtrain/train/trainer.hpp>

#include "train/tiny_training.hpp"

namespace dtrain::train {
namespace {

class Heard : public IgnoringObserver {
 public:
  void on_checkpoint(const Path& path) override { saved.push_back(path.filename()); }
  void on_warning(const std::string& text) override { warnings.push_back(text); }
  void on_lost(const std::string& text) override { lost.push_back(text); }
  std::vector<Path> saved;
  std::vector<std::string> warnings, lost;
};

// Takes a file out of the way of the checkpoints' folder when the first epoch is over.
class MakesRoom final : public Heard {
 public:
  explicit MakesRoom(Path in_the_way) : in_the_way_(std::move(in_the_way)) {}
  void on_epoch(const EpochReport& report) override {
    if (report.epoch == 1) std::filesystem::remove(in_the_way_);
  }

 private:
  const Path in_the_way_;
};

class Saving : public TinyTraining {
 protected:
  Saving() {
    options_.checkpoint_prefix = folder_ / "place" / "m";
    options_.save_patience = std::chrono::milliseconds(0);
  }
  void block() { write_file_atomic(folder_ / "place", "in the way"); }
  TrainResult train_with(Observer& observer) {
    const auto executable = compile(*backend::make_reference_backend());
    data::Loader training = loader();
    const auto membership = elastic::make_fixed_membership(comm::make_single());
    return train(tiny_network(), *executable, training, nullptr, *membership, options_, nullptr, observer);
  }
};

TEST_F(Saving, EndsWithTheLastWeightsOnDisk) {
  Heard heard;
  const TrainResult result = train_with(heard);
  EXPECT_TRUE(result.saved);
  EXPECT_EQ(result.lost, "");
  EXPECT_EQ(heard.saved, (std::vector<Path>{"m-0001.safetensors", "m-0002.safetensors"}));
}

class Accuracies final : public IgnoringObserver {
 public:
  void on_evaluation(const EvaluationReport& report) override { all.push_back(report.accuracy); }
  std::uint32_t best() const { return static_cast<std::uint32_t>(std::ranges::max_element(all) - all.begin()) + 1; }
  std::vector<double> all;
};

// The best of all epochs is among those that are left, wherever it is.
TEST_F(Saving, KeepsTheBestCheckpointBesideTheNewest) {
  options_.epochs = 6;
  options_.keep_checkpoints = 1;
  options_.keep_best = true;
  options_.schedule.base = 0.3;
  const auto executable = compile(*backend::make_reference_backend());
  data::Loader training = loader(), validation = loader(false);
  Accuracies heard;
  train(tiny_network(), *executable, training, &validation, *elastic::make_fixed_membership(comm::make_single()),
        options_, nullptr, heard);
  const std::uint32_t best = heard.best();
  std::vector<std::uint32_t> expected = {6, best};
  if (best == 6) expected.pop_back();
  std::vector<std::uint32_t> left;
  for (const CheckpointName& name : list_checkpoints(*options_.checkpoint_prefix)) left.push_back(name.epoch);
  EXPECT_EQ(left, expected);
  EXPECT_EQ(load_checkpoint(*options_.checkpoint_prefix, 6).best.epoch, best);
}

TEST_F(Saving, RemovesTheParametersOfMxnetWithTheirCheckpoint) {
  options_.epochs = 3;
  options_.keep_checkpoints = 1;
  options_.checkpoint_format = CheckpointFormat::mxnet;
  Heard heard;
  train_with(heard);
  std::set<Path> left;
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "place")) left.insert(file.path().filename());
  EXPECT_EQ(left, (std::set<Path>{"m-0003.json", "m-0003.params", "m-0003.safetensors", "m-symbol.json"}));
}

TEST_F(Saving, ARunWithoutItsLastWeightsNamesWhatIsLost) {
  block();
  Heard heard;
  const TrainResult result = train_with(heard);
  EXPECT_FALSE(result.saved);
  EXPECT_NE(result.lost.find("m-0002"), std::string::npos) << result.lost;
  EXPECT_NE(result.lost.find("this process has saved none since it started"), std::string::npos) << result.lost;
  EXPECT_EQ(heard.lost, std::vector<std::string>{result.lost});
  ASSERT_FALSE(heard.warnings.empty());
  EXPECT_NE(heard.warnings.front().find("no checkpoint can be saved at present"), std::string::npos);
}

TEST_F(Saving, TheEndOfTheRunWaitsForRoom) {
  block();
  options_.save_patience = std::chrono::seconds(20);
  MakesRoom heard(folder_ / "place");
  const TrainResult result = train_with(heard);
  EXPECT_TRUE(result.saved);
  EXPECT_EQ(result.lost, "");
  EXPECT_EQ(list_checkpoints(*options_.checkpoint_prefix).front().epoch, 2u);
}

TEST_F(Saving, AFailureNamesTheLastGoodCheckpointAndItsAge) {
  class Blocks final : public Heard {
   public:
    explicit Blocks(Path folder) : folder_(std::move(folder)) {}
    void on_checkpoint(const Path& path) override {
      Heard::on_checkpoint(path);
      if (saved.size() > 1) return;  // it was written before the first one was reported
      const Path other = folder_.string() + "-away";
      write_file_atomic(other, "in the way");
      // At once: the next save would make a folder anew that is gone for a moment.
      ASSERT_EQ(::renameat2(AT_FDCWD, other.c_str(), AT_FDCWD, folder_.c_str(), RENAME_EXCHANGE), 0);
    }

   private:
    const Path folder_;
  };
  options_.checkpoint_every_steps = 1;
  Blocks heard(folder_ / "place");
  const TrainResult result = train_with(heard);
  EXPECT_FALSE(heard.saved.empty());
  ASSERT_FALSE(heard.warnings.empty());
  EXPECT_NE(heard.warnings.back().find("the last good one is "), std::string::npos) << heard.warnings.back();
  EXPECT_NE(heard.warnings.back().find(" s old)"), std::string::npos) << heard.warnings.back();
  EXPECT_NE(result.lost.find("m-0002"), std::string::npos) << result.lost;
  EXPECT_EQ(heard.warnings.back().find("room"), std::string::npos) << "the disk has room";
  EXPECT_NE(result.lost_hint.find("choose another path"), std::string::npos) << result.lost_hint;
}

TEST_F(Saving, KeepsTheNewestCheckpointsOnly) {
  options_.epochs = 4;
  options_.keep_checkpoints = 2;
  Heard heard;
  train_with(heard);
  const auto names = list_checkpoints(*options_.checkpoint_prefix);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].epoch, 4u);
  EXPECT_EQ(names[1].epoch, 3u);
  EXPECT_FALSE(std::filesystem::exists(names[1].prefix.string() + "-0001.safetensors"));
}

// The run is of two epochs, and an earlier one had five.
TEST_F(Saving, TheFirstCheckpointRemovesTheLaterOnesOfAnEarlierRun) {
  Heard heard;
  options_.epochs = 5;
  train_with(heard);
  const auto epochs_left = [&] {
    std::set<std::uint32_t> left;
    for (const CheckpointName& name : list_checkpoints(*options_.checkpoint_prefix)) left.insert(name.epoch);
    return left;
  };
  options_.epochs = 2;
  train_with(heard);
  EXPECT_EQ(epochs_left(), (std::set<std::uint32_t>{1, 2, 3, 4, 5}));
  options_.replaces_later = true;
  train_with(heard);
  EXPECT_EQ(epochs_left(), (std::set<std::uint32_t>{1, 2}));
}

// --load-epoch would take them, in whichever format this run saves.
TEST_F(Saving, TheFirstCheckpointRemovesTheParametersOfMxnetOfAnEarlierRun) {
  Heard heard;
  options_.epochs = 3;
  options_.checkpoint_format = CheckpointFormat::mxnet;
  train_with(heard);
  for (const char* name : {"m-0003.json", "m-0003.safetensors"}) std::filesystem::remove(folder_ / "place" / name);
  options_.epochs = 1;
  options_.checkpoint_format = CheckpointFormat::safetensors;
  options_.replaces_later = true;
  train_with(heard);
  std::set<Path> left;
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "place")) left.insert(file.path().filename());
  EXPECT_EQ(left, (std::set<Path>{"m-0001.json", "m-0001.safetensors"}));
}

// A worker that starts before the report has come begins with the checkpoint before it.
TEST_F(Saving, RemovesAnOlderCheckpointOnlyWhenTheNewOneIsReported) {
  class Looks final : public Heard {
   public:
    explicit Looks(Path prefix) : prefix_(std::move(prefix)) {}
    void on_checkpoint(const Path& path) override {
      Heard::on_checkpoint(path);
      for (const CheckpointName& name : list_checkpoints(prefix_)) seen.back().insert(name.epoch);
      seen.emplace_back();
    }
    std::vector<std::set<std::uint32_t>> seen{1};

   private:
    const Path prefix_;
  } heard(*options_.checkpoint_prefix);
  options_.epochs = 3;
  options_.keep_checkpoints = 1;
  train_with(heard);
  ASSERT_EQ(heard.saved.size(), 3u);
  for (const std::uint32_t epoch : {2u, 3u}) EXPECT_TRUE(heard.seen.at(epoch - 1).contains(epoch - 1)) << epoch;
  const auto left = list_checkpoints(*options_.checkpoint_prefix);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left.front().epoch, 3u);
}

TEST_F(Saving, ALossThatIsNotFiniteBeforeTheFirstCheckpointNamesNone) {
  options_.schedule.base = 1e30;
  Heard heard;
  try {
    train_with(heard);
    FAIL() << "it must diverge";
  } catch (const Diverged& error) {
    EXPECT_NE(error.hint().find("no checkpoint has been saved yet"), std::string::npos) << error.hint();
  }
}

// To resume from such a checkpoint with a smaller rate would end in the same way.
TEST_F(Saving, AnUnusableCheckpointIsNotCalledGood) {
  Heard heard;
  train_with(heard);
  const auto hint_of_run = [&](Checkpoint start) {
    options_.epochs = 9;
    const auto executable = compile(*backend::make_reference_backend());
    data::Loader training = loader();
    const auto membership = elastic::make_fixed_membership(comm::make_single());
    try {
      train(tiny_network(), *executable, training, nullptr, *membership, options_, &start, heard);
    } catch (const Diverged& error) {
      return error.hint();
    }
    return std::string("it must diverge");
  };
  Checkpoint start = load_checkpoint(*options_.checkpoint_prefix, 2);
  const Checkpoint good = start;
  for (float& weight : start.state.parameters) weight = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(hint_of_run(start).find("m-0002 give no finite loss: begin again"), std::string::npos);
  EXPECT_NE(hint_of_run(start).find("'load-epoch' N"), std::string::npos) << "there is an older one";
  start.cursor.epoch = 1;
  EXPECT_EQ(hint_of_run(start).find("'load-epoch' N"), std::string::npos) << "there is none";
  options_.schedule.base = 1e30;
  EXPECT_NE(hint_of_run(good).find("the last checkpoint is good: resume from it"), std::string::npos);
}

TEST_F(Saving, TensorsWithoutManifestAreFound) {
  Heard heard;
  train_with(heard);
  EXPECT_TRUE(orphaned_tensors(*options_.checkpoint_prefix).empty());
  std::filesystem::remove(folder_ / "place" / "m-0001.json");
  EXPECT_EQ(orphaned_tensors(*options_.checkpoint_prefix), std::vector<Path>{folder_ / "place" / "m-0001.safetensors"});
  write_file_atomic(folder_ / "place" / "m-0001.json.tmp.1", "a crash came before the rename");
  EXPECT_TRUE(orphaned_tensors(*options_.checkpoint_prefix).empty());
}

}  // namespace
}  // namespace dtrain::train
