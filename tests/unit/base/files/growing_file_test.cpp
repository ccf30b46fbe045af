#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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

TEST_F(GrowingFileTest, ItSaysWhetherItEndsWithinALine) {
  EXPECT_FALSE(GrowingFile(path_).ends_within_a_line());
  GrowingFile(path_).append("half");
  EXPECT_TRUE(GrowingFile(path_).ends_within_a_line());
}

TEST_F(GrowingFileTest, AFolderThatIsNotThereIsAnError) { EXPECT_THROW(GrowingFile(path_ / "no" / "file"), Error); }

}  // namespace
}  // namespace dtrain
