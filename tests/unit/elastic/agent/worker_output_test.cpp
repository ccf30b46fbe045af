#include "elastic/agent/worker_output.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/text.hpp>
#include <dtrain/elastic/agent.hpp>

#include "elastic/temporary_folder.hpp"

namespace dtrain::elastic {
namespace {

class WorkerOutputTest : public testing::Test {
 protected:
  static std::string mark(const std::string& token = "secret") {
    WorkerJob job;
    job.worker = 3;
    job.token = token;
    return program_starts(job);
  }
  static std::string start(const std::string& note = "generation 1") { return mark() + note + "\n"; }
  std::string print(const std::string& text) { return output_.add(OutputStream::output, text); }
  std::string complain(const std::string& text) { return output_.add(OutputStream::error, text); }
  std::string last() const { return join(output_.last_lines(), "|"); }

  TemporaryFolder folder_;
  WorkerOutput output_{folder_ / "log", mark()};
};

TEST_F(WorkerOutputTest, KeepsTheLastLinesOfBothStreams) {
  for (int i = 0; i < 30; ++i) print(std::to_string(i) + "\n");
  complain("why\n");
  EXPECT_EQ(output_.last_lines().size(), WorkerOutput::kLastLines);
  EXPECT_TRUE(last().ends_with("28|29|why")) << last();
}

TEST_F(WorkerOutputTest, TheLastLinesBeginAnewWhereTheProgramStartsAgain) {
  print(start() + "first\n");
  complain(start() + "first complaint\n");
  EXPECT_EQ(print("still first\n" + start() + "second\n"), "still first\nsecond\n");
  EXPECT_EQ(last(), "first complaint|second") << "the other stream has not come so far";
  EXPECT_EQ(complain(start()), "");
  EXPECT_EQ(last(), "second");
}

TEST_F(WorkerOutputTest, AStartEndsAnUnfinishedLineAndIsNotLogged) {
  print("50%");
  EXPECT_EQ(print(start() + "second\n"), "50%\nsecond\n");
  EXPECT_EQ(last(), "second");
  const std::string log = read_file(folder_ / "log");
  EXPECT_NE(log.find("50%\n"), std::string::npos) << log;
  EXPECT_EQ(log.find(mark()), std::string::npos) << log;
}

TEST_F(WorkerOutputTest, TheNoteOfAStartIsLoggedOnceBeforeItsLinesAndNotShown) {
  EXPECT_EQ(print("before\n" + start("generation 1") + "first\n"), "before\nfirst\n");
  EXPECT_EQ(complain(start("generation 1")), "");
  EXPECT_EQ(complain(start("generation 2")), "");
  std::string log;
  for (const std::string& line : split(read_file(folder_ / "log"), '\n')) log += line.substr(line.find('Z') + 1) + "|";
  EXPECT_EQ(log, " before|\tgeneration 1| first|\tgeneration 2||");
}

TEST_F(WorkerOutputTest, AProgramThatDoesNotKnowTheTokenWritesNoNote) {
  const std::string guess = mark("guess") + "generation 9\n";
  EXPECT_EQ(print(guess), guess);
  EXPECT_EQ(read_file(folder_ / "log").find("Z\t"), std::string::npos);
}

}  // namespace
}  // namespace dtrain::elastic
