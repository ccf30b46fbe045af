#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>

#include "spec/wait_for_stop.hpp"

namespace dtrain::job {
namespace {

class WaitForStop : public ::testing::Test {
 protected:
  WaitForStop() : folder_{std::filesystem::temp_directory_path() / ("dtrain-stop-" + std::to_string(::getpid()))} {
    make_folder(folder_.path);
    watch_stop_signals();
  }
  ~WaitForStop() override {
    reset_stop_signal();
    std::filesystem::remove_all(folder_.path);
  }
  JobFolder folder_;
};

TEST_F(WaitForStop, AJobThatIsOverIsNotWaitedFor) {
  const FileLock still_there = coordinate(folder_);
  write_coordinator(folder_, {.token = "", .ended = "stopped by SIGINT"});
  EXPECT_NO_THROW(wait_until_over(folder_));
}

TEST_F(WaitForStop, ASignalEndsTheWaitAndNotTheJob) {
  const FileLock runs = coordinate(folder_);
  write_coordinator(folder_, {.token = "t"});
  std::raise(SIGTERM);
  try {
    wait_until_over(folder_);
    FAIL() << "it waited for a job that does not end";
  } catch (const Interrupted& stop) {
    EXPECT_EQ(stop.signal(), SIGTERM);
    EXPECT_STREQ(stop.what(), "stopped waiting; the job is still ending");
  }
}

}  // namespace
}  // namespace dtrain::job
