#include <gtest/gtest.h>

#include <dtrain/net/objects.hpp>

#include "aws_sources.hpp"
#include "common/test_server.hpp"

namespace dtrain::net {
namespace {

class AwsRoles : public AwsSources {
 protected:
  AwsRoles() {
    variables["AWS_REGION"] = "us-east-1";
    settings.endpoint_url = server->url("");
  }
  static void SetUpTestSuite() { server = std::make_unique<TestServer>("s3_server.py"); }
  static void TearDownTestSuite() { server.reset(); }
  void use_profile(const char* name, const std::string& config) {
    write("config", config);
    variables["AWS_PROFILE"] = name;
  }

  static inline std::unique_ptr<TestServer> server;
};

constexpr const char* kKeys = "aws_access_key_id = key\naws_secret_access_key = secret\n";

TEST_F(AwsRoles, AreAssumedFromAnotherProfile) {
  use_profile("work", std::string("[profile base]\n") + kKeys +
                          "[profile work]\nrole_arn = arn:x:trainer\nsource_profile = base\n");
  EXPECT_EQ(credentials().access_key, "fresh");
  EXPECT_EQ(credentials().session_token, "arn:x:trainer");
  EXPECT_TRUE(credentials().expires);
  ObjectStore store(settings);
  store.put("s3://bucket/with-a-role", bytes_of("x"));
}

TEST_F(AwsRoles, MayLeadToFurtherRoles) {
  use_profile("c", std::string("[profile a]\n") + kKeys + "[profile b]\nrole_arn = arn:b\nsource_profile = a\n" +
                       "[profile c]\nrole_arn = arn:c\nsource_profile = b\n");
  EXPECT_EQ(credentials().session_token, "arn:c");
}

TEST_F(AwsRoles, AreAssumedInTheRegionOfTheFirstProfile) {
  variables.erase("AWS_REGION");
  use_profile("top", std::string("[profile base]\n") + kKeys +
                         "[profile mid]\nrole_arn = arn:mid\nsource_profile = base\n" +
                         "[profile top]\nrole_arn = arn:top\nsource_profile = mid\nregion = us-east-1\n");
  EXPECT_EQ(credentials().session_token, "arn:top");
}

TEST_F(AwsRoles, AreAssumedWithTheProfilesOwnKeysOrThoseOfTheEnvironment) {
  use_profile("own", std::string("[profile own]\nrole_arn = arn:own\nsource_profile = own\n") + kKeys);
  EXPECT_EQ(credentials().session_token, "arn:own");
  use_profile("env", "[profile env]\nrole_arn = arn:env\ncredential_source = Environment\n");
  settings.profile = "env";  // keys of the environment go before a profile that only AWS_PROFILE names
  variables["AWS_ACCESS_KEY_ID"] = "key";
  variables["AWS_SECRET_ACCESS_KEY"] = "secret";
  EXPECT_EQ(credentials().session_token, "arn:env");
}

TEST_F(AwsRoles, ThatLeadBackToThemselvesAreRefused) {
  use_profile("a", "[profile a]\nrole_arn = r\nsource_profile = b\n[profile b]\nrole_arn = r\nsource_profile = a\n");
  EXPECT_TRUE(holds(error(), "leads back to it")) << error();
}

TEST_F(AwsRoles, ThatAreDeniedSayWhich) {
  use_profile("x", std::string("[profile x]\nrole_arn = arn:denied\nsource_profile = x\n") + kKeys);
  EXPECT_TRUE(holds(error(), "AccessDenied") && holds(error(), "arn:denied")) << error();
}

TEST_F(AwsRoles, AreGivenForAWebIdentity) {
  variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = write("token", "who I am\n").string();
  variables["AWS_ROLE_ARN"] = "arn:web";
  EXPECT_EQ(credentials().session_token, "arn:web");
}

TEST_F(AwsRoles, ThatAskForACodeAreRefusedWithTheCommandThatHelps) {
  use_profile("mfa", "[profile mfa]\nrole_arn = r\nsource_profile = mfa\nmfa_serial = m\n");
  EXPECT_TRUE(holds(error(), "code of a device") && holds(error(), "export-credentials --profile mfa")) << error();
}

TEST_F(AwsRoles, MayBeLeftToACommand) {
  const Path document = write("said", R"({"Version": 1, "AccessKeyId": "k", "SecretAccessKey": "s"})");
  use_profile("tool", "[profile tool]\ncredential_process = cat '" + document.string() + "'\n");
  EXPECT_EQ(credentials().access_key, "k");
}

TEST_F(AwsRoles, OfACommandThatFailsNameIt) {
  use_profile("tool", "[profile tool]\ncredential_process = exit 3\n");
  EXPECT_TRUE(holds(error(), "failed | run it by hand: exit 3")) << error();
  use_profile("tool", "[profile tool]\ncredential_process = echo nothing\n");
  EXPECT_TRUE(holds(error(), "printed no credentials")) << error();
  EXPECT_THROW(credentials(), NoCredentials);
}

TEST_F(AwsRoles, OfACommandAreKeptUntilTheyEndInItsTimeZone) {
  const WallTime noon = std::chrono::sys_days(std::chrono::year(2026) / 1 / 31) + std::chrono::hours(12);
  settings.clock = [&] { return noon; };
  const Path document = folder / "said", calls = folder / "calls";
  const auto calls_of_two_requests = [&](const std::string& expiration) {
    std::filesystem::remove(calls);
    write("said", R"({"Version": 1, "AccessKeyId": "k", "SecretAccessKey": "s", "Expiration": ")" + expiration + "\"}");
    AwsIdentity identity(settings);
    EXPECT_EQ(identity.credentials().access_key, "k");
    EXPECT_EQ(identity.credentials().access_key, "k");
    return std::filesystem::file_size(calls);
  };
  use_profile("tool", "[profile tool]\ncredential_process = printf . >>'" + calls.string() + "'; cat '" +
                          document.string() + "'\n");
  EXPECT_EQ(calls_of_two_requests("2026-01-31T05:00:00-08:00"), 1u);
  EXPECT_EQ(credentials().expires, noon + std::chrono::hours(1));
  EXPECT_EQ(calls_of_two_requests("2026-01-31T11:00:00Z"), 1u) << "a wrong clock makes every request ask";
}

TEST_F(AwsRoles, OfTheCoordinatorAreTheLastResortWhereThisClockSaysThatTheyEnded) {
  const auto delegated = std::make_shared<DelegatedCredentials>();
  settings.delegated = delegated;
  delegated->take({.access_key = "late", .secret_key = "s", .expires = settings.clock() - std::chrono::hours(1)});
  EXPECT_EQ(credentials().access_key, "late");
}

TEST_F(AwsRoles, OfTheCoordinatorGoBeforeAllOthersWhileTheyLive) {
  variables["AWS_ACCESS_KEY_ID"] = "own";
  variables["AWS_SECRET_ACCESS_KEY"] = "secret";
  const auto delegated = std::make_shared<DelegatedCredentials>();
  settings.delegated = delegated;
  EXPECT_EQ(credentials().access_key, "own");
  delegated->take({.access_key = "delegated", .secret_key = "s", .expires = settings.clock() + std::chrono::hours(1)});
  EXPECT_EQ(credentials().access_key, "delegated");
  delegated->take({.access_key = "late", .secret_key = "s", .expires = settings.clock() - std::chrono::hours(1)});
  EXPECT_EQ(credentials().access_key, "own");
}

TEST(AwsCredentials, TravelWhole) {
  const AwsCredentials sent{.access_key = "a",
                            .secret_key = "b\"",
                            .session_token = "c",
                            .expires = std::chrono::system_clock::from_time_t(1'700'000'000)};
  const AwsCredentials got = credentials_from(credentials_text(sent), "here");
  EXPECT_EQ(got.secret_key, sent.secret_key);
  EXPECT_EQ(got.session_token, sent.session_token);
  EXPECT_EQ(got.expires, sent.expires);
  EXPECT_EQ(got.source, "here");
}

}  // namespace
}  // namespace dtrain::net
