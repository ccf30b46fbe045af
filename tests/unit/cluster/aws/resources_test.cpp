#include "aws/resources.hpp"

#include <gtest/gtest.h>

namespace dtrain::cluster {
namespace {

// EFS, FSx and IAM refuse a comma in the value of a tag, and IAM allows it in the names of users and sessions.
TEST(Resources, NameTheirOwnerInATagThatAllServicesTake) {
  const Account account{.person = "arn:aws:sts::123456789012:assumed-role/Team/Doe,Jane"};
  EXPECT_EQ(common_tags("demo", account).at(tag::kOwner), "arn:aws:sts::123456789012:assumed-role/Team/Doe_Jane");
}

}  // namespace
}  // namespace dtrain::cluster
