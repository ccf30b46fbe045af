#include "registered/preparation.hpp"

#include <gtest/gtest.h>

#include "common/temporary_folder.hpp"
#include "registered/cluster_lock.hpp"

namespace dtrain::job {
namespace {

class PreparationTest : public ::testing::Test {
 protected:
  Json place() const { return answer_place(Json::object({{"name", "lab"}, {"shared", shared_.path().string()}})); }
  // As the head keeps them once it has made a key and has logged in to hosts.
  static void write_key(const Json& placed) {
    for (const char* file : {"key", "key.pub", "ssh_config", "known_hosts", "cluster.lock"})
      write_file_atomic(folder_of(placed) / file, "text\n");
  }
  static Path folder_of(const Json& placed) { return placed.at("folder").as_string(); }
  static void unplace(const Json& placed) { answer_unplace(Json::object({{"probe", placed.at("probe").as_string()}})); }

 private:
  const TemporaryFolder shared_;
};

TEST_F(PreparationTest, ARegistrationThatFailedLeavesNoKey) {
  const Json placed = place();
  write_key(placed);
  unplace(placed);
  EXPECT_FALSE(std::filesystem::exists(folder_of(placed)));
}

TEST_F(PreparationTest, TheKeyOfAClusterStays) {
  const Json placed = place();
  write_key(placed);
  cluster::write_cluster({.name = "lab",
                          .folder = folder_of(placed).string(),
                          .hosts = {cluster::RegisteredHost{.name = "h1"}},
                          .own_key = true});
  unplace(placed);
  EXPECT_TRUE(std::filesystem::exists(folder_of(placed) / "key"));
}

TEST_F(PreparationTest, TheKeyStaysWhileAnotherCommandMayUseIt) {
  const Json mine = place(), other = place();
  write_key(mine);
  unplace(mine);
  EXPECT_TRUE(std::filesystem::exists(folder_of(mine) / "key"));
  unplace(other);
  EXPECT_FALSE(std::filesystem::exists(folder_of(mine)));
}

TEST_F(PreparationTest, TheKeyStaysWhileACommandHoldsTheLock) {
  const Json placed = place();
  write_key(placed);
  {
    const FileLock lock = lock_cluster(folder_of(placed));
    unplace(placed);
  }
  EXPECT_TRUE(std::filesystem::exists(folder_of(placed) / "key"));
}

TEST_F(PreparationTest, AFolderThatIsGoneIsNoError) {
  const Json placed = place();
  std::filesystem::remove_all(folder_of(placed));
  EXPECT_NO_THROW(unplace(placed));
}

}  // namespace
}  // namespace dtrain::job
