#include "registered/preparation.hpp"

#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <dtrain/base/error.hpp>

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

  const Path& shared() const { return shared_.path(); }
  Path folder_to_be() const { return shared_ / "dtrain-jobs/lab"; }
  // What the refusal of the folder says; "": it is taken.
  std::string refusal() const {
    try {
      place();
      return "";
    } catch (const UsageError& error) {
      return error.what();
    }
  }

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

// As root is on a file server that gives it no rights: it may write there and not read.
TEST_F(PreparationTest, TheKeyStaysWhereTheFolderCannotBeRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  const Json placed = place();
  write_key(placed);
  const Path folder = folder_of(placed);
  for (const auto& [path, mode] : {std::pair{folder, 0733}, {folder / "cluster.lock", 0666}, {shared(), 0755}})
    ASSERT_EQ(::chmod(path.c_str(), static_cast<mode_t>(mode)), 0);
  ::setfsuid(4711);
  unplace(placed);
  ::setfsuid(0);
  EXPECT_TRUE(std::filesystem::exists(folder / "key"));
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

// Another user makes it first, with a key of its own in it.
TEST_F(PreparationTest, AFolderThatOthersMayWriteToIsRefused) {
  std::filesystem::create_directories(folder_to_be());
  ASSERT_EQ(::chmod(folder_to_be().c_str(), 0777), 0);
  EXPECT_NE(refusal().find("other users may write there"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder_to_be()));
  ASSERT_EQ(::chmod(folder_to_be().c_str(), 0755), 0);
  EXPECT_EQ(refusal(), "");
  std::filesystem::remove_all(folder_to_be());
  std::filesystem::create_directory_symlink(folder_to_be().parent_path().parent_path(), folder_to_be());
  EXPECT_NE(refusal().find("symbolic link"), std::string::npos);
}

TEST_F(PreparationTest, AFolderOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  std::filesystem::create_directories(folder_to_be());
  ASSERT_EQ(::chown(folder_to_be().c_str(), 4711, 4711), 0);
  EXPECT_NE(refusal().find("it belongs to 4711, and not to root"), std::string::npos);
}

TEST_F(PreparationTest, TheKeyOfTheClusterIsThatOfItsPrivateHalf) {
  const Json placed = place();
  const cluster::RegisteredCluster lab{.name = "lab", .folder = folder_of(placed).string()};
  write_file_atomic(folder_of(placed) / "key.pub", "ssh-ed25519 AAAAstranger x\n");
  const std::string key = answer_key(lab).at("key").as_string();
  EXPECT_TRUE(key.starts_with("restrict ssh-ed25519 AAAA") && key.ends_with(" dtrain cluster lab")) << key;
  EXPECT_EQ(key.find("stranger"), std::string::npos);
  write_file_atomic(folder_of(placed) / "key.pub", "ssh-ed25519 AAAAstranger x\n");
  EXPECT_EQ(answer_key(lab).at("key").as_string(), key) << "the same at each question";
  ASSERT_EQ(::chmod(folder_of(placed).c_str(), 0777), 0);
  EXPECT_THROW(answer_key(lab), UsageError);
  ASSERT_EQ(::chmod(folder_of(placed).c_str(), 0755), 0);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  ASSERT_EQ(::chown((folder_of(placed) / "key").c_str(), 4711, 4711), 0);
  EXPECT_THROW(answer_key(lab), UsageError);
}

TEST_F(PreparationTest, AFolderThatIsGoneIsNoError) {
  const Json placed = place();
  std::filesystem::remove_all(folder_of(placed));
  EXPECT_NO_THROW(unplace(placed));
}

}  // namespace
}  // namespace dtrain::job
