#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/base/growing_file.hpp>

#include "common/small_files.hpp"

namespace dtrain {
namespace {

class GrowingFileTest : public testing::Test {
 protected:
  GrowingFileTest() : path_(testing::TempDir() + "dtrain-growing-" + std::to_string(::getpid())) {
    std::filesystem::remove(path_);
  }
  ~GrowingFileTest() override { std::filesystem::remove(path_); }

  const Path path_;
  const SmallFiles disk_;
};

TEST_F(GrowingFileTest, WhatDoesNotFitIsWrittenOnceThereIsRoom) {
  GrowingFile file(path_);
  file.append("first\n");
  disk_.limit(10);
  EXPECT_THROW(file.append("second\n"), Error);
  EXPECT_THROW(file.append("third\n"), Error);
  EXPECT_TRUE(file.is_behind());
  EXPECT_EQ(read_file(path_), "first\nseco");
  disk_.lift();
  file.append("fourth\n");
  EXPECT_FALSE(file.is_behind());
  EXPECT_EQ(read_file(path_), "first\nsecond\nthird\nfourth\n");
}

TEST_F(GrowingFileTest, AReserveHoldsDiskBeyondTheEndAndReturnsItAtLast) {
  constexpr std::int64_t kReserve = 1 << 20;
  const auto on_disk = [this] {
    struct stat status {};
    EXPECT_EQ(::stat(path_.c_str(), &status), 0);
    return std::int64_t{status.st_blocks} * 512;
  };
  {
    GrowingFile file(path_);
    file.reserve(kReserve);
    if (on_disk() == 0) GTEST_SKIP() << "this file system reserves nothing";
    EXPECT_GE(on_disk(), kReserve);
    file.append(std::string(kReserve - 100, 'x'));
    EXPECT_GE(on_disk(), 2 * kReserve - 8192);
  }
  EXPECT_EQ(std::filesystem::file_size(path_), static_cast<std::uintmax_t>(kReserve - 100));
  EXPECT_LE(on_disk(), kReserve + 8192);
}

TEST_F(GrowingFileTest, ItCatchesUpWithoutAnythingNew) {
  GrowingFile file(path_);
  disk_.limit(0);
  EXPECT_THROW(file.append("a\n"), Error);
  EXPECT_THROW(file.catch_up(), Error);
  disk_.lift();
  file.catch_up();
  EXPECT_EQ(read_file(path_), "a\n");
}

// From now on fdatasync(2) of this thread fails with EIO, which shows that it is called. False: this kernel filters no
// system calls.
bool refuse_to_sync() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{.len = program.size(), .filter = program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(GrowingFileTest, WhatMustBeOnDiskIsSyncedOnceItIsWritten) {
  GrowingFile file(path_);
  disk_.limit(0);
  EXPECT_THROW(file.append("kept\n"), Error);
  disk_.lift();
  bool refused = false;
  std::thread([&] {
    refused = refuse_to_sync();
    if (!refused) return;
    EXPECT_NO_THROW(file.catch_up()) << "nothing of it must be on disk";
    disk_.limit(0);
    EXPECT_THROW(file.append("a\n", true), Error);
    disk_.lift();
    EXPECT_THROW(file.catch_up(), Error) << "no sync";
    EXPECT_TRUE(file.is_behind()) << "it is written, but may not be on disk";
    EXPECT_THROW(file.append("b\n"), Error) << "the sync is still owed";
  }).join();
  if (!refused) GTEST_SKIP() << "this kernel filters no system calls";
  file.catch_up();
  EXPECT_FALSE(file.is_behind());
  EXPECT_EQ(read_file(path_), "kept\na\nb\n");
}

TEST_F(GrowingFileTest, ItSaysWhetherItEndsWithinALine) {
  EXPECT_FALSE(GrowingFile(path_).ends_within_a_line());
  GrowingFile(path_).append("half");
  EXPECT_TRUE(GrowingFile(path_).ends_within_a_line());
}

TEST_F(GrowingFileTest, AFolderThatIsNotThereIsAnError) { EXPECT_THROW(GrowingFile(path_ / "no" / "file"), Error); }

}  // namespace
}  // namespace dtrain
