#include "tail.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include <dtrain/base/error.hpp>

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

// Bytes that cannot be read for a while, apart from the first ones, as of a service that fails in the middle.
class Failing final : public Files {
 public:
  explicit Failing(std::string text) : text_(std::move(text)) {}
  FoundRuns find_runs() override { return {}; }
  std::optional<std::uint64_t> size(const std::string&) override { return text_.size(); }
  std::string version(const std::string&) override { return {}; }
  std::string read(const std::string&, std::uint64_t from, std::uint64_t most) override {
    if (fails && most > text_.size()) throw DataError("the service does not answer");
    return text_.substr(std::min<std::size_t>(from, text_.size()), most);
  }
  std::vector<ListedFile> list(const std::string&) override { return {}; }
  bool is_local() const override { return false; }
  void become(std::string text) { text_ = std::move(text); }

  bool fails = false;

 private:
  std::string text_;
};

TEST(Tail, ARestartIsSaidAlsoWhereTheFirstReadFails) {
  Failing files("the first run\nsecond\n");
  Tail tail("/r/steps.jsonl");
  EXPECT_EQ(tail.next(files).lines, "the first run\nsecond\n");
  files.become("another run\n");
  files.fails = true;
  EXPECT_THROW(tail.next(files), DataError);
  files.fails = false;
  const Tail::News news = tail.next(files);
  EXPECT_TRUE(news.restarted);
  EXPECT_EQ(news.lines, "another run\n");
  EXPECT_FALSE(tail.next(files).restarted);
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

TEST_F(TailTest, AFileThatCannotBeReachedIsNoOtherFile) {
  append("some lines\n");
  next();
  const Path away = folder_.string() + "-away";
  std::filesystem::rename(folder_, away);
  std::filesystem::create_symlink(folder_.filename(), folder_);  // leads to itself
  EXPECT_THROW(next(), Error);
  std::filesystem::remove(folder_);
  std::filesystem::rename(away, folder_);
  append("more\n");
  EXPECT_EQ(next().lines, "more\n");
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
