#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <vector>

#include <dtrain/base/machine.hpp>

#include "common/set_variable.hpp"
#include "common/temporary_folder.hpp"
#include "registered/head.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;

// Its folder leads to itself for two seconds, which stands for a file server that does not answer.
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
  std::vector<std::string> notes;
  std::promise<void> begun;
  auto runner = std::async(std::launch::async, [&] {
    run_registered_queue("lab", [&](const std::string& line) {
      notes.push_back(line);
      if (notes.size() == 1) begun.set_value();
    });
  });
  EXPECT_EQ(begun.get_future().wait_for(60s), std::future_status::ready);
  std::filesystem::rename(folder, aside);
  std::filesystem::create_symlink(folder, folder);
  EXPECT_EQ(runner.wait_for(2s), std::future_status::timeout) << "it has ended";
  std::filesystem::remove(folder);
  std::filesystem::rename(aside, folder);
  std::filesystem::remove(folder / "cluster.json");
  EXPECT_NO_THROW(runner.get());
  EXPECT_TRUE(std::ranges::any_of(notes, [](const std::string& note) { return note.find("cannot") != note.npos; }));
}

}  // namespace
}  // namespace dtrain::job
