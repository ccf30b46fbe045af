#include <dtrain/base/own_files.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/temporary_folder.hpp"

namespace dtrain {
namespace {

constexpr uid_t kSomebody = 4711;

// What the refusal of this file says, and its hint; "": it is read.
std::string refusal_of(const Path& file) {
  try {
    read_own_file(file);
    return "";
  } catch (const ForeignFile& error) {
    EXPECT_NE(error.hint(), "");
    return error.what() + ("; " + error.hint());
  }
}

TEST(OwnFile, IsReadWhereOnlyItsOwnerWrites) {
  const TemporaryFolder folder;
  for (const unsigned mode : {0600u, 0644u, 0400u}) {
    write_file_atomic(folder / "order", "text", mode);
    EXPECT_EQ(read_own_file(folder / "order"), "text");
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "nothing is left beside it";
}

TEST(OwnFile, IsRefusedWhereOthersWrite) {
  const TemporaryFolder folder;
  const Path file = folder / "order";
  for (const unsigned mode : {0660u, 0602u, 0664u}) {
    write_file_atomic(file, "text");
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    EXPECT_NE(refusal_of(file).find("other users may write it"), std::string::npos) << mode;
    EXPECT_NE(refusal_of(file).find("chmod go-w " + file.string()), std::string::npos) << mode;
  }
}

TEST(OwnFile, IsRefusedWhereItIsALinkOrNoFile) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "own", "text", 0600);
  std::filesystem::create_symlink(folder / "own", folder / "link");
  EXPECT_NE(refusal_of(folder / "link").find("symbolic link"), std::string::npos);
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal_of(folder / "pipe").find("no file"), std::string::npos) << "and nothing waits for a writer";
  EXPECT_NE(refusal_of(folder.path()).find("no file"), std::string::npos);
  EXPECT_THROW(read_own_file(folder / "none"), Error);
}

TEST(OwnFile, IsRefusedWhereAnotherUserOwnsIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  const TemporaryFolder folder;
  const Path file = folder / "order";
  write_file_atomic(file, "text", 0600);
  ASSERT_EQ(::chown(file.c_str(), kSomebody, kSomebody), 0);
  const std::string refused = refusal_of(file);
  EXPECT_NE(refused.find("it belongs to 4711"), std::string::npos);
  EXPECT_EQ(refused.find("chmod"), std::string::npos) << "others made it";
  EXPECT_EQ(owner_of(file), "4711");
  EXPECT_EQ(owner_of(folder / "none"), "");
}

TEST(OwnFile, OfRootIsRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  const TemporaryFolder folder;
  ASSERT_EQ(::chmod(folder.path().c_str(), 0777), 0);
  write_file_atomic(folder / "order", "text", 0644);
  ASSERT_EQ(::seteuid(kSomebody), 0);
  const std::string refused = refusal_of(folder / "order");
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(refused, "");
}

TEST(OwnFolder, BelongsToTheUserAndIsNoLink) {
  const TemporaryFolder folder;
  const Path own = folder / "own";
  make_own_folder(own);
  EXPECT_EQ(std::filesystem::status(own).permissions(), std::filesystem::perms::owner_all);
  EXPECT_TRUE(is_own_folder(own) && is_own_folder(own, FolderRights::any));
  ASSERT_EQ(::chmod(own.c_str(), 0755), 0);
  EXPECT_TRUE(is_own_folder(own) && !is_own_folder(own, FolderRights::any));
  ASSERT_EQ(::chmod(own.c_str(), 0775), 0);
  EXPECT_FALSE(is_own_folder(own));
  ASSERT_EQ(::chmod(own.c_str(), 01777), 0);
  EXPECT_FALSE(is_own_folder(own)) << "others may make files in it";
  std::filesystem::create_directory_symlink(own, folder / "link");
  EXPECT_FALSE(is_own_folder(folder / "link") || is_own_folder(folder / "none"));
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chmod(own.c_str(), 0700), 0);
  ASSERT_EQ(::chown(own.c_str(), kSomebody, kSomebody), 0);
  EXPECT_FALSE(is_own_folder(own));
}

TEST(OwnFolder, IsMadeWithTheseRightsWhateverTheUmask) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(0);
  make_own_folder(folder / "a/b", kReadableFolder);
  make_own_folder(folder / "c/");
  ::umask(before);
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(folder / "a/b").permissions()), kReadableFolder);
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(folder / "c").permissions()), kPrivateFolder);
  make_own_folder(folder / "a/b");
  EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(folder / "a/b").permissions()), kReadableFolder);
  write_file_atomic(folder / "file", "");
  EXPECT_THROW(make_own_folder(folder / "file"), Error);
}

TEST(OwnFolder, IsMadeWithThoseAboveItWhateverTheUmask) {
  const TemporaryFolder home;
  const mode_t before = ::umask(0002);
  const Path made = make_own_folders(home.path(), Path("a") / "b" / "c");
  ::umask(before);
  EXPECT_EQ(made, home / "a/b/c");
  for (const char* folder : {"a", "a/b", "a/b/c"}) {
    EXPECT_EQ(static_cast<unsigned>(std::filesystem::status(home / folder).permissions()), kReadableFolder) << folder;
  }
}

}  // namespace
}  // namespace dtrain
