#include <gtest/gtest.h>

#include <dtrain/net/aws_calls.hpp>

#include "aws/pause.hpp"
#include "aws/problem.hpp"

namespace dtrain::net {
namespace {

struct Refusal {
  long status;
  const char* code;
  AwsProblem problem;
  const char* cause;
};

TEST(AwsProblems, NameTheRoleThatSpotInstancesNeed) {
  const AwsError denied = refusal("ec2 CreateFleet", "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "no");
  EXPECT_NE(denied.hint().find("create-service-linked-role --aws-service-name spot.amazonaws.com"), std::string::npos);
}

TEST(AwsProblems, AreOfOneOfEightCausesByTheirCodes) {
  const Refusal table[] = {
      {500, "InsufficientInstanceCapacity", AwsProblem::capacity, "capacity"},
      {400, "Unsupported", AwsProblem::capacity, "capacity"},
      {400, "SpotMaxPriceTooLow", AwsProblem::capacity, "capacity"},
      {400, "VcpuLimitExceeded", AwsProblem::quota, "quota"},
      {400, "MaxSpotInstanceCountExceeded", AwsProblem::quota, "quota"},
      {400, "SecurityGroupLimitExceeded", AwsProblem::quota, "quota"},
      {400, "ServiceLimitExceeded", AwsProblem::quota, "quota"},
      {403, "UnauthorizedOperation", AwsProblem::denied, "permission"},
      {400, "AccessDeniedException", AwsProblem::denied, "permission"},
      {400, "AuthFailure.ServiceLinkedRoleCreationNotPermitted", AwsProblem::denied, "permission"},
      {401, "AuthFailure", AwsProblem::credentials, "credential"},
      {403, "SignatureDoesNotMatch", AwsProblem::credentials, "credential"},
      {400, "UnrecognizedClientException", AwsProblem::credentials, "credential"},
      {400, "ExpiredToken", AwsProblem::expired_credentials, "credential"},
      {503, "RequestLimitExceeded", AwsProblem::throttled, "throttle"},
      {400, "ThrottlingException", AwsProblem::throttled, "throttle"},
      {500, "InternalError", AwsProblem::transient, "network"},
      {502, "", AwsProblem::transient, "network"},
      {0, "", AwsProblem::transient, "network"},
      {400, "InvalidAMIID.NotFound", AwsProblem::not_found, "config"},
      {400, "InvalidGroup.Duplicate", AwsProblem::exists, "config"},
      {400, "DependencyViolation", AwsProblem::in_use, "config"},
      {400, "InvalidParameterValue", AwsProblem::bad_request, "config"},
      {400, "InvalidKeyPair.Format", AwsProblem::bad_request, "config"},
      {403, "RequestTimeTooSkewed", AwsProblem::clock_skew, "config"},
      {400, "NeverHeardOfIt", AwsProblem::other, "bug"},
  };
  for (const Refusal& one : table) {
    const AwsProblem problem = problem_of(one.status, one.code);
    EXPECT_EQ(problem, one.problem) << one.code;
    EXPECT_EQ(cause_class(problem), one.cause) << one.code;
  }
}

// Nothing else tells a misspelt region from a network that is away.
TEST(AwsProblems, NameTheRegionWhereAHostIsUnknown) {
  const AwsError unknown = error_of("ec2 RunInstances", facts_of_failure("Could not resolve host: ec2.us-esat-1.x"));
  EXPECT_NE(unknown.hint().find("region"), std::string::npos) << unknown.hint();
  const AwsError refused = error_of("ec2 RunInstances", facts_of_failure("Failed to connect to x port 443"));
  EXPECT_EQ(refused.hint().find("region"), std::string::npos) << refused.hint();
}

TEST(AwsProblems, SurviveAPageThatIsNoDocument) {
  const AwsError::Facts facts = facts_of({.status = 500, .body = "<!doctype html><title>500</title><p>Oops"});
  EXPECT_EQ(facts.problem, AwsProblem::transient);
  EXPECT_EQ(facts.code, "");
}

TEST(AwsPauses, ComeOnlyBeforeTriesThatWaitingMends) {
  const AwsLimits limits;
  const AwsAnswer asks_for_time{.status = 503, .headers = {{"retry-after", "3"}}};
  EXPECT_GE(pause_after(1, AwsProblem::throttled, asks_for_time, limits), std::chrono::seconds(3));
  EXPECT_EQ(pause_after(1, AwsProblem::clock_skew, asks_for_time, limits), std::chrono::seconds(0));
  for (int failed = 1; failed < 40; ++failed) {
    EXPECT_LE(pause_after(failed, AwsProblem::throttled, {}, limits), limits.longest_pause);
  }
}

TEST(XmlElements, AreReadByNamesWithoutQuestions) {
  const Element answer =
      parse_xml("<R><a><b>1</b></a><set><item><x>2</x></item><item><x>3</x></item></set></R>", "test");
  EXPECT_EQ(answer.at("a").value("b"), "1");
  EXPECT_EQ(answer.at("none").at("b").value("c"), "");
  ASSERT_EQ(answer.list("set").size(), 2u);
  EXPECT_EQ(answer.list("set")[1].value("x"), "3");
}

TEST(XmlElements, RefuseWhatIsNoXmlOrHasNoEnd) {
  EXPECT_THROW(parse_xml("", "test"), DataError);
  EXPECT_THROW(parse_xml("<a><b></a>", "test"), DataError);
  std::string deep;
  for (int level = 0; level < 100; ++level) deep += "<a>";
  for (int level = 0; level < 100; ++level) deep += "</a>";
  EXPECT_THROW(parse_xml(deep, "test"), DataError);
}

}  // namespace
}  // namespace dtrain::net
