#include <gtest/gtest.h>
#include <unistd.h>

#include "common/recording_reporter.hpp"
#include "spec/newest_start.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;

class NewestStart : public ::testing::Test {
 protected:
  NewestStart() : folder_{std::filesystem::temp_directory_path() / ("dtrain-newest-" + std::to_string(::getpid()))} {
    make_folder(folder_.path);
    run_.options.model_prefix = prefix_;
    run_.options.job.elastic = true;
  }
  ~NewestStart() override { std::filesystem::remove_all(folder_.path); }

  train::CheckpointName name(std::uint32_t epoch) const { return {prefix_, epoch, 0}; }
  Path manifest(std::uint32_t epoch) const { return name(epoch).stem() + ".json"; }
  void save(std::uint32_t epoch) const { train::save_checkpoint(name(epoch), train::small_checkpoint(epoch)); }
  void damage(std::uint32_t epoch) const { write_file_atomic(name(epoch).stem() + ".safetensors", "not tensors"); }
  void report(std::uint32_t epoch) const { write_file_atomic(folder_.latest(), manifest(epoch).string()); }
  // The epoch that the worker begins with; nullopt: it has no start.
  std::optional<std::uint32_t> load() {
    load_newest_start(run_, folder_, reporter_, 0ms);
    return run_.start ? std::optional(run_.start->cursor.epoch) : std::nullopt;
  }

  JobFolder folder_;
  const Path prefix_ = folder_.path / "m";
  TrainRun run_;
  RecordingReporter reporter_;
};

TEST_F(NewestStart, OfAJobThatSavedNothingIsWhatItBeganWith) {
  EXPECT_EQ(load(), std::nullopt);
  EXPECT_FALSE(run_.lost_start) << "fresh weights";
  save(3);
  run_.start_file = manifest(3);
  EXPECT_EQ(load(), 3u);
}

TEST_F(NewestStart, IsReadThoughTheCheckpointThatTheJobBeganWithIsRemoved) {
  run_.start_file = manifest(3);
  save(4);
  report(4);
  EXPECT_EQ(load(), 4u);
  run_.start_file.clear();
  run_.options.load_epoch = 2;
  EXPECT_EQ(load(), 4u);
}

TEST_F(NewestStart, IsNewerThanWhatTheCoordinatorCouldWriteDown) {
  save(5);
  EXPECT_EQ(load(), 5u) << "its name could not be written";
  report(4);
  EXPECT_EQ(load(), 5u) << "the one that was reported is removed";
}

TEST_F(NewestStart, IsTheNewestUndamagedOne) {
  for (const std::uint32_t epoch : {1u, 2u, 3u}) save(epoch);
  report(3);
  damage(3);
  EXPECT_EQ(load(), 2u);
  ASSERT_EQ(reporter_.warnings.size(), 1u);
  EXPECT_NE(reporter_.warnings.front().find("trying the checkpoint before it"), std::string::npos);
}

TEST_F(NewestStart, IsThatOfAJobThatSkippedADamagedOneAtItsBegin) {
  save(2);
  save(3);
  damage(3);
  run_.start_file = manifest(2);
  EXPECT_EQ(load(), 2u);
  run_.start_file.clear();
  run_.start.reset();
  damage(2);
  EXPECT_EQ(load(), std::nullopt);
  ASSERT_TRUE(run_.lost_start);
  EXPECT_NE(run_.lost_start->reason.find("is damaged"), std::string::npos) << run_.lost_start->reason;
}

TEST_F(NewestStart, IsNeverThatOfTheJobOnceItHasTrained) {
  save(1);
  run_.start_file = manifest(1);
  report(2);
  EXPECT_EQ(load(), std::nullopt);
  ASSERT_TRUE(run_.lost_start);
  EXPECT_EQ(run_.lost_start->epoch, 2u);
  EXPECT_NE(run_.lost_start->reason.find("m-0002"), std::string::npos) << run_.lost_start->reason;
}

TEST_F(NewestStart, DoesNotTakeTheCheckpointsOfAnotherRun) {
  save(7);
  run_.options.force = true;
  EXPECT_EQ(load(), std::nullopt);
  EXPECT_FALSE(run_.lost_start);
  save(2);
  report(2);
  EXPECT_EQ(load(), 2u);
}

TEST_F(NewestStart, OfAFolderThatCannotBeReadIsUnknown) {
  make_folder(folder_.latest());
  EXPECT_EQ(load(), std::nullopt);
  ASSERT_TRUE(run_.lost_start) << "the job may have trained";
  EXPECT_GT(run_.lost_start->step, 0u);
}

TEST(OwnCheckpoints, AreNewestFirstAndLaterThanTheBegin) {
  const auto at = [](std::uint32_t epoch, std::uint64_t step = 0) { return train::CheckpointName{"m", epoch, step}; };
  const auto stems = [](const SavedBefore& saved) {
    std::vector<std::string> found;
    for (const train::CheckpointName& name : own_checkpoints(saved)) found.push_back(name.stem());
    return found;
  };
  using Stems = std::vector<std::string>;
  EXPECT_EQ(stems({}), Stems());
  EXPECT_EQ(stems({.begin = at(2), .listed = {at(3), at(2, 5), at(2), at(1)}}),
            (Stems{"m-0003", "m-0002-step00000005"}));
  EXPECT_EQ(stems({.latest = at(2), .listed = {at(3), at(1)}}), (Stems{"m-0003", "m-0002", "m-0001"}));
  EXPECT_EQ(stems({.begin = at(2), .latest = at(2), .listed = {at(2)}}), Stems{"m-0002"}) << "a stop saved it again";
}

}  // namespace
}  // namespace dtrain::job
