#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include <dtrain/base/error.hpp>

#include "agent/life_sign.hpp"
#include "agent/waiting_host.hpp"
#include "common/temporary_folder.hpp"

namespace dtrain::job {
namespace {

using launcher::WaitingState;

// The job folder is not there, as one whose file server does not answer.
class LifeSignTest : public ::testing::Test {
 protected:
  LifeSignTest() { ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }
  ~LifeSignTest() override { ::unsetenv("XDG_CACHE_HOME"); }

  TemporaryFolder cache_;
  const JobFolder folder_{cache_ / "not-there"};
};

TEST_F(LifeSignTest, AnswersProbesWithoutTheJobFolder) {
  LifeSign life(folder_, "w1");
  life.show(WaitingState::waiting);
  EXPECT_NO_THROW(probe_host(folder_, "w1", HostProbe::alive));
  EXPECT_THROW(probe_host(folder_, "w1", HostProbe::ready), Error);
  EXPECT_THROW(probe_host(folder_, "w2", HostProbe::alive), Error);
  life.show(WaitingState::in_job);
  EXPECT_NO_THROW(probe_host(folder_, "w1", HostProbe::ready));
  life.show(WaitingState::left);
  EXPECT_NO_THROW(leave_folder(folder_, "w1", std::chrono::seconds(1))) << "it has left";
}

TEST_F(LifeSignTest, GoesOnWhileTheMainThreadWaitsForTheJobFolder) {
  LifeSign life(folder_, "w1");
  life.show(WaitingState::in_job);
  const auto first = life_sign_of(folder_, "w1");
  ASSERT_TRUE(first);
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (life_sign_of(folder_, "w1")->time == first->time && std::chrono::steady_clock::now() < late) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_GT(life_sign_of(folder_, "w1")->time, first->time);
}

TEST_F(LifeSignTest, IsGoneWithTheProcessAndIsOneForEachFolder) {
  const JobFolder other{cache_ / "other"};
  {
    LifeSign life(folder_, "w1"), beside(other, "w1");
    life.show(WaitingState::waiting);
    beside.show(WaitingState::in_job);
    EXPECT_EQ(life_sign_of(folder_, "w1")->state, WaitingState::waiting);
    EXPECT_EQ(life_sign_of(other, "w1")->state, WaitingState::in_job);
  }
  EXPECT_FALSE(life_sign_of(folder_, "w1"));
}

TEST_F(LifeSignTest, IsNoneWhereTheCacheFolderTakesNoFile) {
  write_file_atomic(cache_ / "dtrain", "no folder");
  LifeSign life(folder_, "w1");
  life.show(WaitingState::waiting);
  EXPECT_FALSE(life_sign_of(folder_, "w1"));
}

}  // namespace
}  // namespace dtrain::job
