#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>

#include "common/temporary_folder.hpp"
#include "job/spec/wait_for_stop.hpp"

namespace dtrain::job {
namespace {

class StopJobInTest : public ::testing::Test {
 protected:
  // A coordinator that nobody reaches.
  void coordinate_from(const std::string& host, const std::string& ended = "") {
    CoordinatorFile file;
    file.pid = 1, file.host = host, file.addresses = {"127.0.0.1"}, file.port = 1, file.ended = ended;
    write_coordinator(folder, file);
  }

  TemporaryFolder temporary;
  const JobFolder folder{temporary.path()};
};

TEST_F(StopJobInTest, SaysThatNoJobRuns) {
  EXPECT_EQ(stop_job_in(folder, "test"), StopOutcome::no_job);
  coordinate_from("elsewhere", "all epochs are done");
  EXPECT_EQ(stop_job_in(folder, "test"), StopOutcome::no_job);
}

TEST_F(StopJobInTest, TakesAJobWhoseCoordinatorOnThisMachineWasKilledForOver) {
  coordinate_from(host_name());
  EXPECT_EQ(stop_job_in(folder, "test"), StopOutcome::no_job);
}

TEST_F(StopJobInTest, FailsWhereACoordinatorMayRunAndDoesNotAnswer) {
  coordinate_from("elsewhere");
  EXPECT_THROW(stop_job_in(folder, "test"), RemoteError);
  coordinate_from(host_name());
  const FileLock lock = coordinate(folder);
  EXPECT_THROW(stop_job_in(folder, "test"), RemoteError);
}

}  // namespace
}  // namespace dtrain::job
