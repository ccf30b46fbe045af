#include "registered/at_boot.hpp"

#include <gtest/gtest.h>

namespace dtrain::job {
namespace {

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
