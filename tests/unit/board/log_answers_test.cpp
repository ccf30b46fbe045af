#include "log_answers.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtrain::board {
namespace {

// A job with one log.
class OneLog final : public Files {
 public:
  explicit OneLog(std::string text) : text_(std::move(text)) {}
  FoundRuns find_runs() override { return {}; }
  std::optional<std::uint64_t> size(const std::string&) override { return text_.size(); }
  std::string version(const std::string&) override { return "1"; }
  std::string read(const std::string&, std::uint64_t from, std::uint64_t most) override {
    return from < text_.size() ? text_.substr(from, most) : std::string();
  }
  std::vector<ListedFile> list(const std::string&) override { return {{"w1.0.log", text_.size()}}; }
  bool is_local() const override { return true; }

 private:
  const std::string text_;
};

// What a page shows that opens the log at its beginning and asks until nothing more comes.
std::string shown(const std::string& log) {
  OneLog files(log);
  std::string all;
  for (std::uint64_t next = 0;;) {
    const Json piece = log_of(files, "/job", *parse_target("/api/log?name=w1.0.log&from=" + std::to_string(next)));
    const std::string text = piece.at("text").as_string();
    if (text.empty()) return all;
    all += text;
    next = static_cast<std::uint64_t>(piece.at("next").as_integer());
  }
}

TEST(LogAnswers, HaveTheUnfinishedLastLine) {
  EXPECT_EQ(shown("one\ntwo\nthr"), "one\ntwo\nthr");
  std::string log;
  while (log.size() < 600'000) log += "a line of " + std::to_string(log.size()) + "\n";
  EXPECT_EQ(shown(log + "and a"), log + "and a");
}

TEST(LogAnswers, TearNoLetterApart) {
  std::string log = "x";  // so that a letter stands across the end of a piece
  while (log.size() < 600'000) log += "\u20ac\u00e9\U0001F600";
  EXPECT_EQ(shown(log + "\n"), log + "\n");
  EXPECT_EQ(shown("h\u00e9\xe2\x82"), "h\u00e9") << "the rest of the last letter has not come";
}

Json found(const std::string& log, const std::string& words) {
  OneLog files(log);
  return log_of(files, "/job", *parse_target("/api/log?name=w1.0.log&search=" + words)).at("matches");
}

TEST(LogAnswers, SearchTheUnfinishedLineAndTheBeginningOfALongOne) {
  EXPECT_EQ(found("one\ntwo\nthr", "THR").dump(), R"([{"line":3,"text":"thr"}])");
  const std::string line = "begin" + std::string(3 << 20, 'x') + "end";
  EXPECT_EQ(found(line + "\nnext begin\n", "begin").as_array().size(), 2u);
  EXPECT_EQ(found(line + "\nnext end\n", "end").as_array().size(), 1u);
  EXPECT_EQ(found(line + "\nnext end\n", "next").as_array().at(0).at("line").as_integer(), 2);
}

TEST(LogAnswers, GoOnBehindALongLineWithoutEnd) {
  const std::string bars(700'000, '\r');
  EXPECT_EQ(shown("begin\n" + bars + "\nend\n"), "begin\n" + bars + "\nend\n");
}

TEST(LogAnswers, BeginWithTheLastLinesOfALongLog) {
  OneLog files(std::string(300'000, 'x') + "\nend\n");
  const Json piece = log_of(files, "/job", *parse_target("/api/log?name=w1.0.log"));
  EXPECT_TRUE(piece.at("cut").as_bool());
  EXPECT_EQ(piece.at("text").as_string(), "end\n");
}

}  // namespace
}  // namespace dtrain::board
