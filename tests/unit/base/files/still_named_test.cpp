#include <dtrain/base/still_named.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>

namespace dtrain {
namespace {

FileDescriptor open_file(const Path& path) { return FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT, 0666)); }

TEST(StillNamed, IsTrueUntilTheFileIsRenamedReplacedOrRemoved) {
  const ScratchFolder scratch;
  const Path path = scratch.path() / "a.part", other = scratch.path() / "a";
  const FileDescriptor file = open_file(path);
  EXPECT_TRUE(is_still_named(file, path));
  std::filesystem::rename(path, other);
  EXPECT_FALSE(is_still_named(file, path));
  EXPECT_TRUE(is_still_named(file, other));
  const FileDescriptor next = open_file(path);
  EXPECT_FALSE(is_still_named(file, path));
  EXPECT_TRUE(is_still_named(next, path));
  std::filesystem::remove(path);
  EXPECT_FALSE(is_still_named(next, path));
  std::filesystem::create_symlink(other, path);
  EXPECT_FALSE(is_still_named(file, path));
}

TEST(StillReached, FollowsSymbolicLinks) {
  const ScratchFolder scratch;
  const Path path = scratch.path() / "log", real = scratch.path() / "real", other = scratch.path() / "other";
  const FileDescriptor file = open_file(real);
  std::filesystem::create_symlink(real, path);
  EXPECT_TRUE(is_still_reached(file, path));
  EXPECT_FALSE(is_still_named(file, path));
  std::filesystem::rename(real, other);
  EXPECT_FALSE(is_still_reached(file, path));
  EXPECT_TRUE(is_still_reached(file, other));
  EXPECT_FALSE(is_still_reached(FileDescriptor(), other));
}

}  // namespace
}  // namespace dtrain
