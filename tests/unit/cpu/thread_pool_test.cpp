#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/few_threads.hpp"
#include "thread_pool.hpp"

namespace dtrain::backend::cpu {
namespace {

TEST(ThreadPool, SaysSoWhereTheSystemGivesNoThreads) {
  const FewThreads few;
  try {
    const ThreadPool pool(400);
    FAIL() << "it has 400 threads";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot start a thread that computes"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace dtrain::backend::cpu
