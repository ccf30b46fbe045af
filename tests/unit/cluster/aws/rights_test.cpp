#include <dtrain/cluster/rights.hpp>

#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include <dtrain/base/error.hpp>

namespace dtrain::cluster {
namespace {

RightsScope narrowest() {
  return {.region = "eu-west-1",
          .cluster = std::string(40, 'c'),
          .account = "123456789012",
          .permissions_boundary = "arn:aws:iam::123456789012:policy/boundary",
          .roles = {"arn:aws:iam::123456789012:role/nodes"},
          .buckets = {"photos"}};
}

const Json& statement(const Json& policy, const std::string& id) {
  for (const Json& one : policy.at("Statement").as_array()) {
    if (one.at("Sid").as_string() == id) return one;
  }
  throw DataError("there is no statement " + id);
}

TEST(Rights, FitIntoOneManagedPolicy) {
  for (const RightsScope& scope : {RightsScope{}, narrowest()}) {
    std::size_t size = 0;
    for (const char c : user_rights(scope).dump()) size += std::isspace(static_cast<unsigned char>(c)) ? 0 : 1;
    EXPECT_LE(size, kMostPolicy);
  }
}

TEST(Rights, HaveIdentifiersThatIamTakes) {
  std::set<std::string> seen;
  for (const Json& policy : {user_rights(narrowest()), head_rights({})}) {
    seen.clear();
    for (const Json& one : policy.at("Statement").as_array()) {
      const std::string& id = one.at("Sid").as_string();
      EXPECT_TRUE(seen.insert(id).second) << id;
      for (const char c : id) EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c))) << id;
    }
  }
}

TEST(Rights, ChangeOnlyWhatCarriesTheTag) {
  const Json any = user_rights({}), one = user_rights({.cluster = "demo"});
  EXPECT_EQ(statement(any, "ChangeOwn").at("Condition").dump(),
            R"({"StringLike":{"aws:ResourceTag/dtrain:cluster":"*"}})");
  EXPECT_EQ(statement(one, "ChangeOwn").at("Condition").dump(),
            R"({"StringEquals":{"aws:ResourceTag/dtrain:cluster":"demo"}})");
  EXPECT_EQ(statement(one, "Make").at("Condition").dump(),
            R"({"StringEquals":{"aws:RequestTag/dtrain:cluster":"demo"}})");
}

TEST(Rights, StayInTheirRegionAndPartition) {
  const Json policy = user_rights({.region = "cn-north-1"});
  EXPECT_EQ(statement(policy, "Read").at("Condition").dump(),
            R"({"StringEquals":{"aws:RequestedRegion":"cn-north-1"}})");
  EXPECT_EQ(statement(policy, "ReadImages").at("Resource").as_string(),
            "arn:aws-cn:ssm:cn-north-1::parameter/aws/service/*");
  EXPECT_EQ(statement(policy, "MakeRoleOfHead").at("Resource").as_string(),
            "arn:aws-cn:iam::*:role/dtrain/cn-north-1/*/*");
}

TEST(Rights, MakeRolesOnlyWithTheirBoundary) {
  const Json policy = user_rights(narrowest()), free = user_rights({});
  const Json& made = statement(policy, "MakeRoleOfHead");
  EXPECT_EQ(made.at("Condition").at("StringEquals").at("iam:PermissionsBoundary").as_string(),
            narrowest().permissions_boundary);
  EXPECT_EQ(statement(free, "MakeRoleOfHead").find("Condition"), nullptr);
}

TEST(Rights, OfBucketsAreGivenByName) {
  EXPECT_THROW(statement(user_rights({}), "SendToBuckets"), DataError);
  EXPECT_EQ(statement(user_rights(narrowest()), "SendToBuckets").at("Resource").as_string(), "arn:aws:s3:::photos/*");
}

TEST(Rights, RefuseAScopeThatIsNone) {
  check_scope(narrowest());
  EXPECT_THROW(check_scope({.region = "Europe"}), UsageError);
  EXPECT_THROW(check_scope({.cluster = "a b"}), UsageError);
  EXPECT_THROW(check_scope({.permissions_boundary = "boundary"}), UsageError);
  EXPECT_THROW(check_scope({.permissions_boundary = "arn:aws:iam::1:role/boundary"}), UsageError);
  EXPECT_THROW(check_scope({.roles = {"nodes"}}), UsageError);
  EXPECT_THROW(check_scope({.buckets = {"s3://photos"}}), UsageError);
}

}  // namespace
}  // namespace dtrain::cluster
