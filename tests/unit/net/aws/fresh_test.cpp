#include "aws/fresh.hpp"

#include <gtest/gtest.h>

#include "aws/problem.hpp"

namespace dtrain::net {
namespace {

using namespace std::chrono_literals;

AwsError::Facts refused(const std::string& code, const std::string& message) {
  AwsError::Facts facts;
  facts.problem = problem_of(400, code);
  facts.code = code;
  facts.message = message;
  return facts;
}

class Fresh : public testing::Test {
 protected:
  Fresh() { resources_.note("sg-1", now_), resources_.note("i-1", now_); }
  bool may_appear(const std::string& code, const std::string& message, const std::vector<std::string>& named,
                  std::chrono::seconds later = 1s) const {
    return resources_.may_appear(refused(code, message), named, now_ + later);
  }

  FreshResources resources_;
  const std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
};

TEST_F(Fresh, MayAppearForAMinute) {
  EXPECT_TRUE(may_appear("InvalidGroup.NotFound", "The security group 'sg-1' does not exist", {"sg-1", "22"}));
  EXPECT_TRUE(may_appear("InvalidID", "The ID is not valid", {"i-1"}));
  EXPECT_FALSE(may_appear("InvalidGroup.NotFound", "The security group 'sg-1' does not exist", {"sg-1"}, 61s));
}

TEST_F(Fresh, IsNotWhatEarlierCallsMade) {
  EXPECT_FALSE(may_appear("InvalidGroup.NotFound", "The security group 'sg-2' does not exist", {"sg-2"}));
}

TEST_F(Fresh, DoesNotExcuseAnotherUnknownResourceOfTheCall) {
  EXPECT_FALSE(may_appear("InvalidAMIID.NotFound", "The image id 'ami-7' does not exist", {"sg-1", "ami-7"}));
  EXPECT_FALSE(may_appear("InvalidInstanceID.NotFound", "The instance IDs 'i-1, i-9' do not exist", {"i-1", "i-9"}));
}

TEST_F(Fresh, IsKnownByTheCodeWhereTheMessageNamesNothing) {
  EXPECT_TRUE(may_appear("InvalidGroup.NotFound", "It does not exist", {"sg-1", "ami-7"}));
  EXPECT_FALSE(may_appear("InvalidAMIID.NotFound", "It does not exist", {"sg-1", "ami-7"}));
}

TEST_F(Fresh, IsNotMistakenForAValueInsideItsName) {
  EXPECT_TRUE(may_appear("InvalidGroup.NotFound", "The security group 'sg-1' does not exist", {"sg-1", "-1"}));
}

TEST_F(Fresh, IsNoReasonToRepeatARefusal) {
  EXPECT_FALSE(may_appear("InvalidPermission.NotFound", "The rule does not exist", {"sg-1"}));
  EXPECT_FALSE(may_appear("UnauthorizedOperation", "No", {"sg-1"}));
}

}  // namespace
}  // namespace dtrain::net
