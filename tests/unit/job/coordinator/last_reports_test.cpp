#include <gtest/gtest.h>
#include <unistd.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>

#include "coordinator/last_reports.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;

class LastReportsTest : public ::testing::Test {
 protected:
  LastReportsTest() : folder_{std::filesystem::temp_directory_path() / ("dtrain-last-" + std::to_string(::getpid()))} {
    make_folder(folder_.path);
  }
  ~LastReportsTest() override { std::filesystem::remove_all(folder_.path); }

  LastReports reports(bool counts_steps = true) const { return {folder_, "p/m", counts_steps}; }
  static void train(LastReports& reports, std::uint32_t epoch, std::uint64_t step) {
    train::StepReport report;
    report.epoch = epoch;
    report.step = step;
    reports.on_trained(report);
  }
  std::string latest() const { return file_exists(folder_.latest()) ? read_file(folder_.latest()) : ""; }

  const JobFolder folder_;
};

TEST_F(LastReportsTest, NameTheNewestCheckpointWhoeverReportsIt) {
  LastReports last = reports();
  last.begin({});
  last.on_checkpoint("p/m-0001.safetensors");
  last.on_checkpoint("p/m-0001-step00000020.safetensors");
  last.on_checkpoint("p/m-0001.params");
  last.on_checkpoint("p/m-0001.safetensors");
  EXPECT_EQ(latest(), "p/m-0001-step00000020.json");
}

TEST_F(LastReportsTest, CompareEpochsAsNumbers) {
  LastReports last = reports();
  last.begin({});
  last.on_checkpoint("p/m-9999.safetensors");
  last.on_checkpoint("p/m-10000.safetensors");
  EXPECT_EQ(latest(), "p/m-10000.json");
  last.on_checkpoint("p/m-9999-step00000020.safetensors");
  EXPECT_EQ(latest(), "p/m-10000.json") << "an old rank 0 reports late";
}

TEST_F(LastReportsTest, AreWrittenAgainUntilTheFolderTakesThem) {
  LastReports last = reports();
  last.begin({});
  make_folder(folder_.latest());  // in the way
  EXPECT_THROW(last.on_checkpoint("p/m-0001.safetensors"), Error);
  const auto now = std::chrono::steady_clock::now();
  EXPECT_THROW(last.catch_up(now), Error);
  EXPECT_NO_THROW(last.catch_up(now + 100ms)) << "not so soon";
  std::filesystem::remove(folder_.latest());
  last.catch_up(now + 2s);
  EXPECT_EQ(latest(), "p/m-0001.json");
}

TEST_F(LastReportsTest, SayWhatAStopDidNotSave) {
  LastReports last = reports();
  last.begin({});
  EXPECT_EQ(last.lost(), "") << "nothing was trained";
  EXPECT_FALSE(last.has_checkpoint());
  train(last, 0, 6);
  EXPECT_EQ(last.lost(), "nothing was saved, all steps are lost");
  last.on_checkpoint("p/m-0000-step00000007.safetensors");
  EXPECT_EQ(last.lost(), "");
  EXPECT_TRUE(last.has_checkpoint());
  train(last, 0, 7);
  EXPECT_EQ(last.lost(), "the steps since p/m-0000-step00000007 are lost");
  last.on_checkpoint("p/m-0001.safetensors");
  EXPECT_EQ(last.lost(), "");
  last.on_lost("the weights of p/m-0001-step00000003 are lost: no room");
  EXPECT_EQ(last.lost(), "the weights of p/m-0001-step00000003 are lost: no room");
}

TEST_F(LastReportsTest, KnowWhatAJobBeganWith) {
  LastReports last = reports();
  write_file_atomic(folder_.latest(), "p/m-0009.json");
  last.begin(train::CheckpointName{"p/m", 2, 0});
  EXPECT_EQ(latest(), "") << "that of the job before";
  EXPECT_TRUE(last.has_checkpoint());
  train(last, 2, 0);
  EXPECT_EQ(last.lost(), "the steps since p/m-0002 are lost");
}

TEST_F(LastReportsTest, GoOnUnderAnotherCoordinator) {
  write_file_atomic(folder_.latest(), "p/m-0003.json");
  LastReports last = reports();
  EXPECT_TRUE(last.has_checkpoint());
  last.on_checkpoint("p/m-0002.safetensors");
  EXPECT_EQ(latest(), "p/m-0003.json") << "an old rank 0 reports late";
  train(last, 2, 19);
  EXPECT_EQ(last.lost(), "");
}

// Their numbers are those of batches that servers have, not of what a checkpoint holds.
TEST_F(LastReportsTest, DoNotCompareTheStepsOfParameterServers) {
  LastReports last = reports(false);
  last.begin({});
  train(last, 0, 30);
  EXPECT_EQ(last.lost(), "nothing was saved, all steps are lost");
  last.on_checkpoint("p/m-0000-step00000007.safetensors");
  EXPECT_EQ(last.lost(), "");
}

}  // namespace
}  // namespace dtrain::job
