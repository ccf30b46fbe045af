#include <gtest/gtest.h>

#include <filesystem>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>

#include "logs/job_life.hpp"

namespace dtrain::job {
namespace {

class JobLifeTest : public ::testing::Test {
 protected:
  const ScratchFolder scratch_;
  const JobFolder folder_{scratch_.path() / "job"};

  void SetUp() override { make_folder(folder_.path); }
  // A folder that a file server does not give: under a link to itself.
  void take_away() const {
    std::filesystem::rename(folder_.path, scratch_.path() / "away");
    std::filesystem::create_symlink("job", folder_.path);
  }
  void bring_back() const {
    std::filesystem::remove(folder_.path);
    std::filesystem::rename(scratch_.path() / "away", folder_.path);
  }
};

TEST_F(JobLifeTest, AFolderThatCannotBeReadForAMomentEndsNoJob) {
  JobLife life(folder_);
  take_away();
  EXPECT_TRUE(life.goes_on());
  EXPECT_THROW(life.is_over(), Error) << "nothing says so";
  bring_back();
  EXPECT_FALSE(life.goes_on()) << "there is no coordinator";
  EXPECT_TRUE(life.is_over());
}

}  // namespace
}  // namespace dtrain::job
