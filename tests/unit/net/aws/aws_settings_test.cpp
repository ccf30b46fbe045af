#include <gtest/gtest.h>

#include <dtrain/net/aws.hpp>
#include <dtrain/net/aws_calls.hpp>
#include <dtrain/net/objects.hpp>

#include "aws/home.hpp"
#include "aws/ini.hpp"
#include "aws/problem.hpp"
#include "aws_sources.hpp"
#include "common/set_variable.hpp"
#include "common/test_server.hpp"

namespace dtrain::net {
namespace {

class AwsSetup : public AwsSources {};

TEST_F(AwsSetup, PrefersKeysOfTheEnvironment) {
  write("credentials", "[default]\naws_access_key_id = file\naws_secret_access_key = s\n");
  variables["AWS_ACCESS_KEY_ID"] = "env";
  variables["AWS_SECRET_ACCESS_KEY"] = "secret";
  variables["AWS_SESSION_TOKEN"] = "token";
  EXPECT_EQ(credentials().access_key, "env");
  EXPECT_EQ(credentials().session_token, "token");
}

TEST_F(AwsSetup, PassesOverTheEnvironmentWhenAProfileIsNamedByHand) {
  write("credentials", "[other]\naws_access_key_id = file\naws_secret_access_key = s\n");
  variables["AWS_ACCESS_KEY_ID"] = "env";
  variables["AWS_SECRET_ACCESS_KEY"] = "secret";
  settings.profile = "other";
  EXPECT_EQ(credentials().access_key, "file");
}

TEST_F(AwsSetup, PrefersTheCredentialsFileToTheConfigFile) {
  write("credentials", "[x]\naws_access_key_id = one\naws_secret_access_key = s\n");
  write("config", "[profile x]\naws_access_key_id = two\naws_secret_access_key = s\nregion = eu-west-1\n");
  variables["AWS_PROFILE"] = "x";
  EXPECT_EQ(credentials().access_key, "one");
  EXPECT_EQ(aws_region(settings), "eu-west-1");
}

TEST_F(AwsSetup, NamesEverySourceThatHadNone) {
  for (const char* source : {"environment (", "profile (", "container (", "instance ("}) {
    EXPECT_TRUE(holds(error(), source)) << error();
  }
}

TEST_F(AwsSetup, RefusesAProfileThatIsNotThere) {
  variables["AWS_PROFILE"] = "typo";
  EXPECT_TRUE(holds(error(), "AWS profile typo")) << error();
}

TEST_F(AwsSetup, RefusesHalfAKeyPair) {
  variables["AWS_ACCESS_KEY_ID"] = "env";
  EXPECT_TRUE(holds(error(), "only one of")) << error();
}

TEST_F(AwsSetup, SendsTheContainersTokenNowhereElse) {
  variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1.example.org/c";
  EXPECT_TRUE(holds(error(), "http://127.0.0.1.example.org/c: it is neither")) << error();
  for (const char* url :
       {"http://127.0.0.1:80@example.invalid/c", "http://localhost:x@example.invalid/c",
        "http://[::1]@example.invalid/c", "http://127.0.0.1\\@example.invalid/c", "ftp://127.0.0.1/c"}) {
    variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = url;
    EXPECT_TRUE(holds(error(), std::string(url) + ": it is neither")) << error();
  }
}

TEST_F(AwsSetup, TakesNoOtherIdentityWhereTheContainersEndpointDoesNotAnswer) {
  variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1:1/c";
  EXPECT_THROW(credentials(), NoCredentials);
  const std::string refused = error();
  EXPECT_TRUE(holds(refused, "http://127.0.0.1:1/c: ")) << refused;
  EXPECT_TRUE(holds(refused, "AWS_CONTAINER_CREDENTIALS_FULL_URI")) << refused;
  EXPECT_FALSE(holds(refused, "instance")) << refused;
}

TEST_F(AwsSetup, TakesTheRegionFromTheFirstPlaceThatSaysIt) {
  write("config", "[default]\nregion = c\n");
  EXPECT_EQ(aws_region(settings), "c");
  variables["AWS_DEFAULT_REGION"] = "b";
  EXPECT_EQ(aws_region(settings), "b");
  variables["AWS_REGION"] = "a";
  EXPECT_EQ(aws_region(settings), "a");
}

TEST_F(AwsSetup, HasNoChosenRegionWhereNothingSaysIt) {
  EXPECT_EQ(chosen_region(settings), "");
  write("config", "[default]\nregion = c\n");
  EXPECT_EQ(chosen_region(settings), "c");
  variables["AWS_REGION"] = "a";
  EXPECT_EQ(chosen_region(settings), "a");
}

TEST_F(AwsSetup, KnowsTheHostsOfAllPartitions) {
  const auto url = [&](const char* region) { return aws_endpoint(kS3, region, settings).url; };
  EXPECT_EQ(url("eu-west-1"), "https://s3.eu-west-1.amazonaws.com");
  EXPECT_EQ(url("us-gov-west-1"), "https://s3.us-gov-west-1.amazonaws.com");
  EXPECT_EQ(url("cn-north-1"), "https://s3.cn-north-1.amazonaws.com.cn");
  variables["AWS_USE_DUALSTACK_ENDPOINT"] = "true";
  EXPECT_EQ(url("eu-west-1"), "https://s3.dualstack.eu-west-1.amazonaws.com");
}

TEST_F(AwsSetup, KnowsTheOneHomeOfAServiceWithoutRegions) {
  const auto home = [&](const char* region) {
    return aws_endpoint(kIam.service, region, settings).url + " " + signing_region(kIam.service, region);
  };
  EXPECT_EQ(home("eu-west-1"), "https://iam.amazonaws.com us-east-1");
  EXPECT_EQ(home("us-gov-east-1"), "https://iam.us-gov.amazonaws.com us-gov-west-1");
  EXPECT_EQ(home("cn-northwest-1"), "https://iam.cn-north-1.amazonaws.com.cn cn-north-1");
  EXPECT_EQ(home("us-iso-west-1"), "https://iam.us-iso-east-1.c2s.ic.gov us-iso-east-1");
  EXPECT_EQ(home("eusc-de-east-1"), "https://iam.eusc-de-east-1.amazonaws.eu eusc-de-east-1");
  EXPECT_EQ(aws_domain("us-gov-east-1"), "amazonaws.com");
  EXPECT_EQ(aws_domain("us-isob-east-1"), "sc2s.sgov.gov");
  variables["AWS_ENDPOINT_URL_IAM"] = "http://a";
  EXPECT_EQ(home("eu-west-1"), "http://a us-east-1");
  EXPECT_EQ(signing_region(kS3, "eu-west-1"), "eu-west-1");
}

TEST_F(AwsSetup, FollowsTheOrderOfEndpoints) {
  const auto url = [&] { return aws_endpoint(kS3, "r", settings).url; };
  write("config",
        "[default]\nendpoint_url = http://d\nservices = mine\n[services mine]\ns3 =\n  endpoint_url = http://c\n");
  EXPECT_EQ(url(), "http://c");
  variables["AWS_ENDPOINT_URL"] = "http://b";
  EXPECT_EQ(url(), "http://b");
  variables["AWS_ENDPOINT_URL_S3"] = "http://a/";
  EXPECT_EQ(url(), "http://a");
  variables["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true";
  EXPECT_EQ(url(), "https://s3.r.amazonaws.com");
}

TEST_F(AwsSetup, TrustsTheCertificatesThatTheProfileNames) {
  const std::string certificate = folder / "certificate";
  const SetVariable made("TEST_CERTIFICATE", certificate), aws("AWS_CA_BUNDLE", ""), other("SSL_CERT_FILE", "/none");
  const TestServer server("https_server.py");
  const AwsRequest request{.endpoint = "https" + server.url("").substr(4), .path = "ok", .sign = false};
  try {
    AwsClient(kSts, settings).call(request);
    ADD_FAILURE() << "it trusted the server";
  } catch (const AwsError& refused) {
    EXPECT_EQ(refused.facts().problem, AwsProblem::untrusted);
    EXPECT_EQ(refused.facts().tries, 1);
    EXPECT_TRUE(holds(refused.hint(), "ca_bundle")) << refused.hint();
  }
  try {  // of a public object, for which no profile counts
    (void)ObjectStore(settings).state(request.endpoint + "ok");
    ADD_FAILURE() << "it trusted the server";
  } catch (const AwsError& refused) {
    EXPECT_TRUE(holds(refused.hint(), "CURL_CA_BUNDLE")) << refused.hint();
    EXPECT_FALSE(holds(refused.hint(), "profile")) << refused.hint();
  }
  write("config", "[default]\nca_bundle = " + certificate + "\n");
  EXPECT_EQ(AwsClient(kSts, settings).call(request).body, "safe");
  variables["AWS_CA_BUNDLE"] = "/of/the/environment";
  EXPECT_EQ(aws_ca_bundle(settings), "");
}

TEST(Ini, ReadsCommentsAndNestedKeys) {
  const Ini ini = parse_ini("# c\n[ profile   x ]\nA = 1 # why\nb=2#3\ns3 =\n  d = 4\n", "f");
  const std::map<std::string, std::string> wanted{{"a", "1"}, {"b", "2#3"}, {"s3", ""}, {"s3.d", "4"}};
  EXPECT_EQ(ini.at("profile x"), wanted);
}

TEST(Ini, TakesNamesOutOfTheirQuotes) {
  const Ini ini =
      parse_ini("[profile 'my prof']\n[profile \"b  c\"]\n[sso-session 's']\n[services \"x\"]\n['y']\n", "f");
  for (const char* name : {"profile my prof", "profile b  c", "sso-session s", "services x", "'y'"}) {
    EXPECT_TRUE(ini.contains(name)) << name;
  }
}

TEST(Ini, NamesTheLineThatItDoesNotUnderstand) { EXPECT_THROW(parse_ini("[x]\nno equals sign\n", "f"), UsageError); }

TEST(AwsProblems, ReadsTheErrorsOfAllProtocols) {
  const auto code = [](std::string body) {
    return facts_of({.status = 400, .headers = {}, .body = std::move(body)}).code;
  };
  EXPECT_EQ(code("<Error><Code>NoSuchKey</Code></Error>"), "NoSuchKey");
  EXPECT_EQ(code("<ErrorResponse><Error><Code>A</Code></Error></ErrorResponse>"), "A");
  EXPECT_EQ(code("<Response><Errors><Error><Code>B</Code></Error></Errors></Response>"), "B");
  EXPECT_EQ(code("{\"__type\": \"com.amazon#C\", \"message\": \"m\"}"), "C");
  EXPECT_EQ(code("<html>not an error of AWS"), "");
}

TEST(AwsProblems, GoesByTheCodeBeforeTheStatus) {
  EXPECT_EQ(problem_of(400, "SlowDown"), AwsProblem::throttled);
  EXPECT_EQ(problem_of(403, "RequestTimeTooSkewed"), AwsProblem::clock_skew);
  EXPECT_EQ(problem_of(500, "Unheard"), AwsProblem::transient);
  EXPECT_EQ(problem_of(403, ""), AwsProblem::denied);
}

}  // namespace
}  // namespace dtrain::net
