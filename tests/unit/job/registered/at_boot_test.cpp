#include "registered/at_boot.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>

#include "common/recording_reporter.hpp"
#include "common/temporary_folder.hpp"
#include "registered/head.hpp"

namespace dtrain::job {
namespace {

// A crontab program whose -l ends with an error; what it is given to keep is in the file `kept`.
class AtBootWithCron : public ::testing::Test {
 protected:
  void let_it_say(const std::string& error) {
    write_file_atomic(folder_ / "crontab",
                      "#!/bin/sh\nif [ \"$1\" = -l ]; then echo \"" + error + "\" >&2; exit 1; fi\ncat >" +
                          (folder_ / "kept").string() + "\n",
                      0755);
    ::setenv("PATH", (folder_.path().string() + ":" + path_).c_str(), 1);
  }
  ~AtBootWithCron() override { ::setenv("PATH", path_.c_str(), 1); }
  bool is_written() const { return std::filesystem::exists(folder_ / "kept"); }

  const std::string path_ = environment("PATH").value_or("");
  TemporaryFolder folder_;
};

cluster::RegisteredCluster lab() { return {.name = "lab", .shared = "/nfs/a b", .folder = "/nfs/a b/dtrain-jobs/lab"}; }

TEST(AtBoot, TheLineWaitsForTheSharedFolderAndKeepsPercentSignsFromCron) {
  cluster::RegisteredCluster cluster = lab();
  cluster.shared = "/nfs/50%";
  EXPECT_EQ(
      boot_line(cluster, {"/opt/dtrain"}),
      "@reboot for i in $(seq 60); do if [ -e '/nfs/a b/dtrain-jobs/lab/cluster.json' ]; then cd '/nfs/50\\%' && "
      "exec /opt/dtrain agent --jobs-of lab </dev/null >>'/nfs/a b/dtrain-jobs/lab/runner.log' 2>&1; fi; sleep 10; "
      "done # dtrain cluster lab");
}

TEST_F(AtBootWithCron, ACrontabThatCannotBeReadIsNotReplaced) {
  let_it_say("crontab: your uid is not in the passwd file");
  EXPECT_THROW(start_queue_at_boot(lab()), Error);
  EXPECT_FALSE(is_written());
  EXPECT_NE(forget_boot("lab").find("not in the passwd file"), std::string::npos);
  EXPECT_FALSE(is_written());
}

TEST_F(AtBootWithCron, AUserWithoutACrontabGetsOne) {
  for (const char* none : {"no crontab for me", "crontab: can't open 'me': No such file or directory"}) {
    let_it_say(none);
    start_queue_at_boot(lab());
    EXPECT_TRUE(read_file(folder_ / "kept").ends_with("# dtrain cluster lab\n"));
  }
}

// The price that a budget needs is looked for before anything is written, and cron before that.
TEST_F(AtBootWithCron, WithoutCronNothingIsRegistered) {
  ::setenv("PATH", folder_.path().c_str(), 1);
  cluster::RegisteredCluster cluster = lab();
  cluster.folder = (folder_ / "lab").string();
  cluster.hosts = {{.name = "h1", .host = "h1"}};
  cluster.budget = 1;
  RecordingReporter reporter;
  try {
    answer_as_head(Json::object({{"ask", "claim"}, {"cluster", cluster::to_json(cluster)}, {"at_boot", true}}),
                   reporter);
    ADD_FAILURE() << "there is no cron";
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "setting 'at-boot': the head has no cron");
  }
  EXPECT_FALSE(std::filesystem::exists(cluster.folder));
}

TEST(AtBoot, OtherLinesStay) {
  const std::string mine = "MAILTO=me\n5 4 * * * backup # dtrain cluster lab2\n";
  const std::string line = boot_line(lab(), {"dtrain"});
  EXPECT_EQ(without_boot_line(mine + line + "\n", "lab"), mine);
  EXPECT_EQ(without_boot_line(line + "\n" + mine, "lab"), mine);
  EXPECT_EQ(without_boot_line(mine + line, "lab"), mine);
  EXPECT_EQ(without_boot_line(mine, "lab"), mine);
  EXPECT_EQ(without_boot_line("", "lab"), "");
}

}  // namespace
}  // namespace dtrain::job
