#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {
namespace {

std::string problem_with(std::size_t options, std::size_t tags) {
  ClusterRequest request{.name = "demo", .bundle_sha256 = std::string(64, 'a')};
  for (std::size_t i = 0; i < options; ++i) request.options["option-" + std::to_string(i)] = "x";
  Account account;
  for (std::size_t i = 0; i < tags; ++i) account.tags["tag-" + std::to_string(i)] = "x";
  try {
    check_request(request, account);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// EC2 takes 50 tags for a group.
TEST(CheckRequest, LeavesRoomForTheTagsThatComeLaterAndThoseOfTheUser) {
  EXPECT_EQ(problem_with(26, 0), "");
  EXPECT_EQ(problem_with(27, 0),
            "the options of cluster demo take 27 tags of its security group, and EC2 leaves room for 26");
  EXPECT_EQ(problem_with(16, 10), "");
  EXPECT_EQ(problem_with(17, 10),
            "the options of cluster demo take 17 tags of its security group, and EC2 leaves room for 16 beside 10 of "
            "setting 'tag'");
}

}  // namespace
}  // namespace dtrain::cluster
