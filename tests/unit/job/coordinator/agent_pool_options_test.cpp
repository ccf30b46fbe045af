#include "coordinator/agent_pool_options.hpp"

#include <gtest/gtest.h>

#include "common/recording_reporter.hpp"
#include "coordinator/program_work.hpp"

namespace dtrain::job {
namespace {

class AgentPoolOptions : public testing::Test {
 protected:
  elastic::NetworkAgentPoolOptions options(const elastic::CoordinatorOrder* order = nullptr) {
    return agent_pool_options(*work_, {"folder"}, order, "token", 3);
  }
  void make_work() { work_.emplace(spec_, JobFolder{}, reporter_); }

  RecordingReporter reporter_;
  config::ProgramSpec spec_;
  std::optional<ProgramWork> work_;
};

TEST_F(AgentPoolOptions, TheUserWhoStartedTheJobSeesTheOutputOfItsWorkers) {
  make_work();
  const elastic::NetworkAgentPoolOptions chosen = options();
  ASSERT_TRUE(chosen.on_output);
  chosen.on_output("w1", 2, OutputStream::output, "hello");
  EXPECT_EQ(reporter_.answers, std::vector<std::string>{"[w1.2] hello"});
}

TEST_F(AgentPoolOptions, ACoordinatorThatHasOnlyALogLeavesTheOutputToTheLogsOfTheWorkers) {
  make_work();
  elastic::CoordinatorOrder order;
  order.document = work_->document();
  EXPECT_FALSE(options(&order).on_output) << "it took over";
  spec_.options.job.detach = true;
  make_work();
  EXPECT_FALSE(options().on_output) << "it is detached";
}

TEST_F(AgentPoolOptions, NobodySeesOutputThatIsHidden) {
  spec_.options.hides_stdout = spec_.options.hides_stderr = true;
  make_work();
  EXPECT_FALSE(options().on_output);
}

}  // namespace
}  // namespace dtrain::job
