#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "agent/coordinator_process.hpp"
#include "elastic/temporary_folder.hpp"

namespace dtrain::elastic {
namespace {

// Also for a user who may write everywhere.
TEST(CoordinatorProcess, IsNotStartedWhereTheJobFolderCannotBeWritten) {
  const TemporaryFolder folder;
  net::Loop loop;
  CoordinatorOrder order;
  order.job_folder = (folder / "away").string();
  try {
    const CoordinatorProcess process(loop, {"/bin/true"}, {}, folder / "", order, [](std::uint16_t) {});
    FAIL() << "it was started";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(order.job_folder), std::string::npos) << error.what();
    EXPECT_FALSE(error.hint().empty());
  }
}

}  // namespace
}  // namespace dtrain::elastic
