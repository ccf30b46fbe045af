#include <fcntl.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <future>
#include <utility>

#include <dtrain/base/machine.hpp>

#include "common/set_variable.hpp"
#include "common/temporary_folder.hpp"
#include "registered/head.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;

// At once: a look between two steps would find no folder, which ends the runner.
void swap_names(const Path& one, const Path& other) {
  ASSERT_EQ(::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE), 0);
}

// Its folder leads to itself for a while, which stands for a file server that does not answer.
TEST(RegisteredRunner, GoesOnWhileItsFolderCannotBeRead) {
  const TemporaryFolder home;
  const SetVariable variable("HOME", home.path().string());
  const Path folder = home / "queue", aside = home / "aside";
  make_folder(folder);
  const cluster::RegisteredCluster lab{.name = "lab",
                                       .shared = home.path().string(),
                                       .folder = folder.string(),
                                       .machine = host_name(),
                                       .hosts = {cluster::RegisteredHost{.name = "h1", .host = "h1"}}};
  cluster::write_cluster(lab);
  cluster::become_head(lab);
  std::promise<void> begun, complained;
  bool any = false, any_complaint = false;
  auto runner = std::async(std::launch::async, [&] {
    run_registered_queue("lab", [&](const std::string& line) {
      if (!std::exchange(any, true)) begun.set_value();
      const bool complains = line.find("cannot") != line.npos;
      if (complains && !std::exchange(any_complaint, true)) complained.set_value();
    });
  });
  EXPECT_EQ(begun.get_future().wait_for(60s), std::future_status::ready);
  std::filesystem::create_symlink(folder, aside);
  swap_names(folder, aside);
  EXPECT_EQ(complained.get_future().wait_for(60s), std::future_status::ready);
  EXPECT_EQ(runner.wait_for(1s), std::future_status::timeout) << "it has ended";
  swap_names(folder, aside);
  std::filesystem::remove(folder / "cluster.json");
  EXPECT_NO_THROW(runner.get());
}

}  // namespace
}  // namespace dtrain::job
