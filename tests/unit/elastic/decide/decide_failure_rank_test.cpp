// The rank that a failure is reported with: the one that was committed for its generation.
#include "elastic/job.hpp"

namespace dtrain::elastic {
namespace {

// The ranks in the reports of failures since the last take_all().
std::vector<std::int64_t> failed_ranks(const Job& job) {
  std::vector<std::int64_t> ranks;
  for (const Json& failed : events(job.all(), EventKind::failed)) ranks.push_back(failed.at("rank").as_integer());
  return ranks;
}

TEST(DecideFailureRank, TheLossOfALowerRankMovesNobodyUp) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  for (const char* host : {"w1", "w2"}) job.feed(exited(job.worker_on(host), 3));
  EXPECT_EQ(failed_ranks(job), (std::vector<std::int64_t>{0, 1}));
}

TEST(DecideFailureRank, TheNextGenerationCountsAnew) {
  Job job;
  job.run_on({"w1", "w2", "w3"});
  job.feed(exited(job.worker_on("w1"), 3));
  job.freeze();
  job.complete_change();
  job.take_all();
  job.feed(exited(job.worker_on("w2"), 3));
  EXPECT_EQ(failed_ranks(job), std::vector<std::int64_t>{0});
}

TEST(DecideFailureRank, ATakeoverKeepsTheRanksOfThoseThatCome) {
  Policy policy = elastic_policy();
  policy.quorum = true;
  Job job(policy);
  job.run_on({"w1", "w2", "w3"});
  job.take_over({"w2", "w3"});
  job.feed(exited(job.worker_on("w2"), 3));
  EXPECT_EQ(failed_ranks(job), (std::vector<std::int64_t>{0, 1}));
}

}  // namespace
}  // namespace dtrain::elastic
