#include "worker/start_finder.hpp"

#include <gtest/gtest.h>

#include "common/recording_reporter.hpp"
#include "common/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::job {
namespace {

class FindStart : public ::testing::Test {
 protected:
  FindStart() {
    run_.options.model_prefix = folder_ / "m";
    run_.options.job.elastic = true;
  }
  void save(std::uint32_t epoch) const {
    train::save_checkpoint({folder_ / "m", epoch, 0}, train::small_checkpoint(epoch));
  }
  std::uint32_t epoch() const { return run_.start->cursor.epoch; }

  const TemporaryFolder folder_;
  TrainRun run_;
  RecordingReporter reporter_;
  StartFinder finder_{run_, JobFolder{folder_.path()}, reporter_};
};

TEST_F(FindStart, IsThatOfACheckpointThatWasSavedMeanwhile) {
  save(1);
  finder_.find();
  EXPECT_EQ(epoch(), 1u);
  save(2);
  const auto found = finder_.find_again();
  ASSERT_TRUE(found && found->checkpoint);
  EXPECT_EQ(found->checkpoint->cursor.epoch, 2u);
  EXPECT_FALSE(found->lost);
  EXPECT_FALSE(finder_.find_again()) << "nothing is new";
}

TEST_F(FindStart, OfARunThatSavedNothingStays) {
  finder_.find();
  EXPECT_FALSE(run_.start);
  EXPECT_FALSE(finder_.find_again());
}

}  // namespace
}  // namespace dtrain::job
