#include <dtrain/base/growing_file.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include <dtrain/base/error.hpp>

namespace dtrain {
namespace {

class GrowingFileTest : public testing::Test {
 protected:
  GrowingFileTest() : path_(testing::TempDir() + "dtrain-growing-" + std::to_string(::getpid())) {
    std::filesystem::remove(path_);
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &usual_);
  }
  ~GrowingFileTest() override {
    limit(usual_.rlim_cur);
    std::filesystem::remove(path_);
  }
  // A limit of the file's size stands for a full disk: a write stops in the middle in the same way.
  void limit(rlim_t size) const {
    const rlimit small{size, usual_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &small);
  }

  const Path path_;
  rlimit usual_{};
};

TEST_F(GrowingFileTest, WhatDoesNotFitIsWrittenOnceThereIsRoom) {
  GrowingFile file(path_);
  file.append("first\n");
  limit(10);
  EXPECT_THROW(file.append("second\n"), Error);
  EXPECT_THROW(file.append("third\n"), Error);
  EXPECT_TRUE(file.is_behind());
  EXPECT_EQ(read_file(path_), "first\nseco");
  limit(usual_.rlim_cur);
  file.append("fourth\n");
  EXPECT_FALSE(file.is_behind());
  EXPECT_EQ(read_file(path_), "first\nsecond\nthird\nfourth\n");
}

TEST_F(GrowingFileTest, ItCatchesUpWithoutAnythingNew) {
  GrowingFile file(path_);
  limit(0);
  EXPECT_THROW(file.append("a\n"), Error);
  EXPECT_THROW(file.catch_up(), Error);
  limit(usual_.rlim_cur);
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
