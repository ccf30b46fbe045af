#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"
#include "registered/cluster_lock.hpp"

namespace dtrain::job {
namespace {

TEST(ClusterLock, AFolderThatCannotBeWrittenIsThatOfTheClusterAndNotOfAJob) {
  const TemporaryFolder folder;
  try {
    lock_cluster(folder / "none");
    FAIL() << "there is no such folder";
  } catch (const Error& error) {
    EXPECT_NE(error.hint().find("--shared"), std::string::npos) << error.hint();
  }
}

}  // namespace
}  // namespace dtrain::job
