#include "coordinator/detach.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

#include "common/temporary_folder.hpp"

namespace dtrain::job {
namespace {

void print(std::string_view text) {
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) ::_exit(9);
}

class Detaching : public testing::Test {
 protected:
  Detaching() { write_file_atomic(folder_.coordinator_log(), "theirs\n"); }

  // The background process says that it is refused.
  Detached::Outcome refused() {
    const Detached detached = detach(folder_);
    if (detached.outcome) return *detached.outcome;
    print("refused\n");
    ::_exit(4);
  }
  std::string log() const { return read_file(folder_.coordinator_log()); }

  const TemporaryFolder place_;
  const JobFolder folder_{make_logs(place_.path())};

 private:
  static Path make_logs(const Path& folder) {
    make_folder(folder / "logs");
    return folder;
  }
};

TEST_F(Detaching, LeavesTheLogToTheJobThatRuns) {
  write_coordinator(folder_, {.pid = 1, .host = "w1", .token = "t"});
  const Detached::Outcome outcome = refused();
  EXPECT_FALSE(outcome.runs);
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_EQ(outcome.said, "refused\n");
  EXPECT_EQ(log(), "theirs\n");
}

TEST_F(Detaching, LogsWhyNoJobBegan) {
  EXPECT_EQ(refused().said, "refused\n");
  EXPECT_EQ(log(), "theirs\nrefused\n");
}

TEST_F(Detaching, TakesTheLogOnceItCoordinates) {
  const Detached detached = detach(folder_);
  if (!detached.outcome) {
    print("early\n");
    detached.take_log();
    print("late\n");
    detached.tell_running();
    ::_exit(0);
  }
  ::waitpid(static_cast<pid_t>(detached.outcome->pid), nullptr, 0);
  EXPECT_TRUE(detached.outcome->runs);
  EXPECT_EQ(detached.outcome->said, "early\nlate\n");
  EXPECT_EQ(log(), "theirs\nearly\nlate\n");
}

}  // namespace
}  // namespace dtrain::job
