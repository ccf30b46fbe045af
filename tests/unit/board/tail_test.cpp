#include "tail.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

namespace dtrain::board {
namespace {

class TailTest : public testing::Test {
 protected:
  TailTest() { std::filesystem::create_directories(folder_); }
  ~TailTest() override { std::filesystem::remove_all(folder_); }
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  Tail::News next() { return tail_.next(*files_); }

  const Path folder_ = std::filesystem::temp_directory_path() / ("board_tail_" + std::to_string(::getpid()));
  const Path path_ = folder_ / "events.jsonl";
  std::unique_ptr<Files> files_ = open_files(folder_.string(), nullptr);
  Tail tail_{path_.string()};
};

TEST_F(TailTest, ALineCountsOnceItIsWhole) {
  EXPECT_EQ(next().lines, "");
  append("one\ntw");
  EXPECT_EQ(next().lines, "one\n");
  EXPECT_EQ(next().lines, "");
  append("o\nthree\n");
  EXPECT_EQ(next().lines, "two\nthree\n");
}

TEST_F(TailTest, AFileThatIsReplacedIsReadAnew) {
  append("the first run\n");
  next();
  std::filesystem::remove(path_);
  append("the second run, which is longer\n");
  const Tail::News news = next();
  EXPECT_TRUE(news.restarted);
  EXPECT_EQ(news.lines, "the second run, which is longer\n");
}

TEST_F(TailTest, AFileThatIsCutOrVanishesIsReadAnew) {
  append("some lines\nof a run\n");
  next();
  std::filesystem::remove(path_);
  EXPECT_TRUE(next().restarted);
  append("new\n");
  EXPECT_EQ(next().lines, "new\n");
  std::filesystem::resize_file(path_, 0);
  EXPECT_TRUE(next().restarted);
}

TEST_F(TailTest, ALongFileComesInPieces) {
  append(std::string(3 << 19, 'x') + "\nend\n");
  EXPECT_TRUE(next().more);
  EXPECT_EQ(next().lines.size(), (3u << 19) + 5);
  append("more\n");
  EXPECT_EQ(next().lines, "more\n");
}

}  // namespace
}  // namespace dtrain::board
