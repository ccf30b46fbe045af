#include <dtrain/base/open_locked.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <utility>

#include <dtrain/base/still_named.hpp>

// What another process does between the opening of a file and its lock, once.
static std::function<void()> before_lock;

// In place of the C library's.
extern "C" int flock(int file, int operation) noexcept {
  if (const auto act = std::exchange(before_lock, nullptr)) act();
  return static_cast<int>(::syscall(SYS_flock, file, operation));
}

namespace dtrain {
namespace {

struct Opened {
  FileDescriptor file;
  int error;
};

Opened try_to_open(const Path& path, int flags) {
  FileDescriptor file = open_locked(path, flags);
  const int error = file ? 0 : errno;
  return {std::move(file), error};
}

TEST(OpenLocked, OneHolderAtATime) {
  const ScratchFolder scratch;
  const Path path = scratch.path() / "a.part";
  {
    const Opened first = try_to_open(path, O_CREAT);
    EXPECT_TRUE(first.file);
    const Opened second = try_to_open(path, 0);
    EXPECT_FALSE(second.file);
    EXPECT_EQ(second.error, EWOULDBLOCK);
  }
  EXPECT_TRUE(try_to_open(path, 0).file);
}

TEST(OpenLocked, CreatesWhereItIsToldTo) {
  const ScratchFolder scratch;
  const Path path = scratch.path() / "a.part";
  EXPECT_EQ(try_to_open(path, 0).error, ENOENT);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(try_to_open(path, O_CREAT).file);
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(OpenLocked, ARenamedFileIsNotInTheWay) {
  const ScratchFolder scratch;
  const Path path = scratch.path() / "a.part";
  const Opened first = try_to_open(path, O_CREAT);
  std::filesystem::rename(path, scratch.path() / "a");
  const Opened second = try_to_open(path, O_CREAT);
  EXPECT_TRUE(is_still_named(second.file, path));
}

TEST(OpenLocked, RefusesASymbolicLink) {
  const ScratchFolder scratch;
  const Path path = scratch.path() / "a.part";
  std::filesystem::create_symlink(scratch.path() / "elsewhere", path);
  EXPECT_EQ(try_to_open(path, O_CREAT).error, ELOOP);
  EXPECT_FALSE(std::filesystem::exists(scratch.path() / "elsewhere"));
}

TEST(OpenLocked, WhatLosesItsNameBeforeTheLockIsOpenedAgain) {
  const ScratchFolder scratch;
  const Path path = scratch.path() / "a.part", whole = scratch.path() / "a";
  before_lock = [&] { std::filesystem::rename(path, whole); };
  const Opened opened = try_to_open(path, O_CREAT);
  EXPECT_FALSE(before_lock) << "this program does not lock by the flock() above";
  EXPECT_TRUE(is_still_named(opened.file, path));
  EXPECT_TRUE(std::filesystem::exists(whole));
}

TEST(OpenLocked, WhatIsRemovedBeforeTheLockIsNotThere) {
  const ScratchFolder scratch;
  const Path path = scratch.path() / "a.part";
  write_file_atomic(path, "");
  before_lock = [&] { std::filesystem::remove(path); };
  EXPECT_EQ(try_to_open(path, 0).error, ENOENT);
}

}  // namespace
}  // namespace dtrain
