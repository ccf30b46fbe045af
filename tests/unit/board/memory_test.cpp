#include "memory.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "target.hpp"

namespace dtrain::board {
namespace {

long kilobytes_of_files() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "RssFile:") {
  }
  long size = 0;
  status >> size;
  return size;
}

TEST(Memory, CodeThatIsGivenBackRunsAgain) {
  const long before = kilobytes_of_files();
  give_back_memory();
  EXPECT_LT(kilobytes_of_files(), before);
  const auto target = parse_target("/api/series?run=a%20b");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->text("run"), "a b");
}

}  // namespace
}  // namespace dtrain::board
