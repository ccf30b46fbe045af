#include <dtrain/cli/run.hpp>

#include <gtest/gtest.h>

#include <new>
#include <thread>

namespace dtrain::cli {
namespace {

TEST(RunDeathTest, OutOfMemoryInAThreadIsAnErrorMessage) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto run_out = [] {
    char program[] = "dtrain", version[] = "--version";
    char* words[] = {program, version};
    run(2, words);
    std::thread([] { throw std::bad_alloc(); }).join();
  };
  EXPECT_EXIT(run_out(), testing::ExitedWithCode(1), "dtrain: out of memory");
}

}  // namespace
}  // namespace dtrain::cli
