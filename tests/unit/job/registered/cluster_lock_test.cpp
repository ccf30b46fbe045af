#include <gtest/gtest.h>
#include <sys/stat.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/own_files.hpp>

#include "common/temporary_folder.hpp"
#include "registered/cluster_events.hpp"
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

TEST(ClusterLock, OthersWriteNoFileOfAClusterWhateverTheUmask) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(0);
  lock_cluster(folder.path());
  append_event(folder.path(), "w1 added");
  ::umask(before);
  for (const char* file : {kClusterLock, "events.jsonl"}) {
    const auto mode = static_cast<unsigned>(std::filesystem::status(folder / file).permissions());
    EXPECT_EQ(mode, kReadableFile) << file;
  }
}

}  // namespace
}  // namespace dtrain::job
