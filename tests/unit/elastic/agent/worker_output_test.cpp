#include "elastic/agent/worker_output.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/text.hpp>
#include <dtrain/elastic/agent.hpp>

#include "elastic/temporary_folder.hpp"

namespace dtrain::elastic {
namespace {

class WorkerOutputTest : public testing::Test {
 protected:
  static std::string start() { return std::string(kProgramStarts) + "\n"; }
  std::string print(const std::string& text) { return output_.add(OutputStream::output, text); }
  std::string complain(const std::string& text) { return output_.add(OutputStream::error, text); }
  std::string last() const { return join(output_.last_lines(), "|"); }

  TemporaryFolder folder_;
  WorkerOutput output_{folder_ / "log"};
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
  EXPECT_EQ(log.find("the program starts"), std::string::npos) << log;
}

}  // namespace
}  // namespace dtrain::elastic
