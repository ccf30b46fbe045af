#include "log_answers.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtrain::board {
namespace {

// A job with one log.
class OneLog final : public Files {
 public:
  explicit OneLog(std::string text) : text_(std::move(text)) {}
  std::vector<std::string> find_runs() override { return {}; }
  std::optional<std::uint64_t> size(const std::string&) override { return text_.size(); }
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

TEST(LogAnswers, AreWholeLines) {
  EXPECT_EQ(shown("one\ntwo\nthr"), "one\ntwo\n");
  std::string log;
  while (log.size() < 600'000) log += "a line of " + std::to_string(log.size()) + "\n";
  EXPECT_EQ(shown(log + "and a"), log);
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
