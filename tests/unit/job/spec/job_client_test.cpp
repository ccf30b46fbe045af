#include "job/spec/job_client.hpp"

#include <gtest/gtest.h>

namespace dtrain::job {
namespace {

Json list_with(const std::string& host, const std::string& state) {
  return Json::object({{"hosts", Json::array({Json::object({{"name", host}, {"state", state}})})}});
}

TEST(JobClient, FindsWhatAHostIsInTheCoordinatorsList) {
  for (const auto& [phase, name] : elastic::kHostPhaseNames)
    EXPECT_EQ(phase_in(list_with("w1", std::string(name)), "w1"), phase);
  EXPECT_EQ(phase_in(list_with("w1", "member"), "w2"), std::nullopt);
}

TEST(JobClient, RefusesAStateOfAHostThatItDoesNotKnow) {
  EXPECT_THROW((void)phase_in(list_with("w1", "asleep"), "w1"), DataError);
}

}  // namespace
}  // namespace dtrain::job
