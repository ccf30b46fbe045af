#include <dtrain/cluster/rights.hpp>

#include <gtest/gtest.h>

#include <cctype>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/fleet.hpp>

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
  RightsScope most = narrowest();
  most.adopts = most.heals = true;
  for (const Json& policy :
       {user_rights(narrowest()), user_rights(most), head_rights({}), head_rights(most), worker_rights(most)}) {
    seen.clear();
    for (const Json& one : policy.at("Statement").as_array()) {
      const std::string& id = one.at("Sid").as_string();
      EXPECT_TRUE(seen.insert(id).second) << id;
      for (const char c : id) EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c))) << id;
    }
  }
}

TEST(Rights, UseOnlyTheKeysThatAreNamedAndLendThemOnlyToServices) {
  const std::string key = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab";
  RightsScope scope = narrowest();
  scope.keys = {key};
  scope.heals = true;
  for (const Json& policy : {user_rights(scope), head_rights(scope), worker_rights(scope)}) {
    for (const char* id : {"SeeKeys", "UseKeys", "LendKeys"}) {
      EXPECT_EQ(statement(policy, id).at("Resource").as_string(), key);
    }
    EXPECT_EQ(statement(policy, "LendKeys").at("Condition").dump(), R"({"Bool":{"kms:GrantIsForAWSResource":"true"}})");
  }
  EXPECT_EQ(user_rights(narrowest()).dump().find("kms:"), std::string::npos);
  scope.keys = {"alias/training"};
  EXPECT_THROW(check_scope(scope), UsageError);
}

TEST(Rights, AHeadThatHealsChangesOnlyItsOwnCluster) {
  const Json policy = head_rights({.cluster = "demo", .heals = true});
  EXPECT_EQ(statement(policy, "StartWorkers").at("Condition").dump(),
            R"({"StringEquals":{"aws:RequestTag/dtrain:cluster":"demo","aws:RequestTag/dtrain:role":"worker"}})");
  EXPECT_EQ(statement(policy, "StartWithDisks").at("Condition").dump(),
            R"({"StringEquals":{"aws:RequestTag/dtrain:cluster":"demo"}})");
  EXPECT_EQ(statement(policy, "GiveRoleToWorkers").at("Resource").as_string(),
            "arn:aws:iam::*:role/dtrain/*/demo/dtrain-demo-*-w");
  const std::string text = policy.dump();
  for (const char* never : {"CreateRole", "DeleteSecurityGroup", "CreateSecurityGroup", "s3:"}) {
    EXPECT_EQ(text.find(never), std::string::npos) << never;
  }
}

// Every program on the head can use them: it cannot end the head, and neither the options of the cluster, its secret
// nor who is the head are its to write.
TEST(Rights, AHeadThatHealsWritesNoTagButThoseOfHealing) {
  const Json policy = head_rights({.cluster = "demo", .heals = true});
  const std::string of_worker = R"({"aws:ResourceTag/dtrain:cluster":"demo","aws:ResourceTag/dtrain:role":"worker"})";
  EXPECT_EQ(statement(policy, "EndWorkers").at("Condition").dump(), R"({"StringEquals":)" + of_worker + "}");
  const Json& tags = statement(policy, "TagWorkers").at("Condition");
  EXPECT_EQ(tags.at("StringEquals").dump(), of_worker);
  std::set<std::string> keys;
  for (const Json& key : tags.at("ForAllValues:StringEquals").at("aws:TagKeys").as_array())
    keys.insert(key.as_string());
  const Json& group = statement(policy, "TellWhatWasDone").at("Condition").at("ForAllValues:StringLike");
  for (const Json& key : group.at("aws:TagKeys").as_array()) keys.insert(key.as_string());
  for (const char* never : {tag::kCluster, tag::kRole, tag::kAdmission, tag::kHead, tag::kRules, tag::kOwner})
    EXPECT_FALSE(keys.contains(never)) << never;
  for (const std::string& key : keys)
    EXPECT_FALSE(key.starts_with(tag::kOption) || key == "*" || key == "dtrain:*") << key;
  int tagging = 0;
  for (const Json& one : policy.at("Statement").as_array()) {
    if (one.at("Action").dump().find("ec2:CreateTags") == std::string::npos) continue;
    ++tagging;
    const std::string conditions = one.at("Condition").dump();
    EXPECT_TRUE(conditions.find("aws:TagKeys") != conditions.npos ||
                conditions.find("ec2:CreateAction") != conditions.npos)
        << one.dump();
  }
  EXPECT_EQ(tagging, 3);
}

TEST(Rights, AWorkerStartsAHeadByItsTemplateAlone) {
  const RightsScope scope{.region = "eu-west-1", .cluster = "demo", .account = "123456789012", .heals = true};
  const Json policy = worker_rights(scope);
  const std::string by_template =
      R"("ArnLike":{"ec2:LaunchTemplate":"arn:aws:ec2:eu-west-1:123456789012:launch-template/*"},)"
      R"("Bool":{"ec2:IsLaunchTemplateResource":"true"})";
  EXPECT_EQ(statement(policy, "StartHead").at("Condition").dump(),
            R"({"StringEquals":{"aws:RequestTag/dtrain:cluster":"demo","aws:RequestTag/dtrain:role":"head"},)" +
                by_template + "}");
  EXPECT_EQ(statement(policy, "StartHeadByTemplate").at("Condition").dump(),
            R"({"StringEquals":{"aws:ResourceTag/dtrain:cluster":"demo","aws:ResourceTag/dtrain:role":"head"}})");
  EXPECT_EQ(statement(policy, "StartHeadWith").at("Condition").dump(), "{" + by_template + "}");
  EXPECT_EQ(statement(policy, "GiveRoleToHead").at("Resource").as_string(),
            "arn:aws:iam::123456789012:role/dtrain/eu-west-1/demo/dtrain-demo-eu-west-1");
  for (const char* never : {"TerminateInstances", "CreateFleet", "ModifyLaunchTemplate", "CreateRole", "s3:"}) {
    EXPECT_EQ(policy.dump().find(never), std::string::npos) << never;
  }
}

TEST(Rights, StacksAreChangedOnlyByWhoAdopts) {
  EXPECT_EQ(user_rights({}).dump().find("autoscaling"), std::string::npos);
  const Json policy = user_rights({.cluster = "demo", .adopts = true});
  EXPECT_EQ(statement(policy, "AdoptMachines").at("Condition").dump(),
            R"({"StringEquals":{"aws:RequestTag/dtrain:cluster":"demo"}})");
  EXPECT_EQ(policy.dump().find("DeleteStack"), std::string::npos);
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

TEST(Rights, NameThePartitionOfEachRegion) {
  const std::pair<const char*, const char*> partitions[] = {{"eu-west-1", "aws"},
                                                            {"", "aws"},
                                                            {"us-gov-west-1", "aws-us-gov"},
                                                            {"us-iso-east-1", "aws-iso"},
                                                            {"us-isob-east-1", "aws-iso-b"},
                                                            {"eusc-de-east-1", "aws-eusc"}};
  for (const auto& [region, partition] : partitions) {
    const std::string arn = statement(user_rights({.region = region}), "ReadImages").at("Resource").as_string();
    EXPECT_TRUE(arn.starts_with(std::string("arn:") + partition + ":ssm:")) << arn;
  }
}

TEST(Rights, MakeRolesOnlyWithTheirBoundary) {
  const Json policy = user_rights(narrowest()), free = user_rights({});
  const Json& made = statement(policy, "MakeRoleOfHead");
  EXPECT_EQ(made.at("Condition").at("StringEquals").at("iam:PermissionsBoundary").as_string(),
            narrowest().permissions_boundary);
  EXPECT_EQ(statement(free, "MakeRoleOfHead").find("Condition"), nullptr);
}

TEST(Rights, OfBucketsAreGivenByName) {
  EXPECT_THROW(statement(user_rights({}), "Send"), DataError);
  EXPECT_EQ(statement(user_rights(narrowest()), "Send").at("Resource").as_string(), "arn:aws:s3:::photos/*");
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
