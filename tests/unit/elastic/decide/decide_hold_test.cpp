// The generation after a hold says what ended it.
#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

TEST(DecideHold, TheNextGenerationNamesWhoCameAfterTheWait) {
  Policy policy = elastic_policy();
  policy.min_workers = 2;
  policy.quarantine_base = policy.quarantine_cap = 3'600s;
  Job job(policy);
  job.run_on({"w1", "w2"});
  job.feed(exited(job.worker_on("w2"), 0, 9));
  job.freeze();
  ASSERT_TRUE(job.state().freezing && job.state().freezing->holding_since);
  const std::string cause = job.state().freezing->reason;
  job.want({"w1", "w2", "w3"});
  job.prepare_host("w3");
  ASSERT_TRUE(job.state().change);
  EXPECT_EQ(job.state().change->reason, cause + "; after waiting for workers, w3 joined");
}

}  // namespace
}  // namespace dtrain::elastic
