#include <gtest/gtest.h>

#include <filesystem>

#include <dtrain/base/json.hpp>

#include "aws_sources.hpp"
#include "common/test_server.hpp"

namespace dtrain::net {
namespace {

// The names of the cache files are what sha1sum says of "corp" and of "https://corp.example/start".
constexpr const char* kOfSession = ".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json";
constexpr const char* kOfStartUrl = ".aws/sso/cache/f7c9b39d0b4c7a7d82c79307585f77e1c5e74378.json";
constexpr const char* kSession =
    "[profile work]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = trainer\n"
    "[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://corp.example/start\n";

class AwsSso : public AwsSources {
 protected:
  AwsSso() {
    variables = {{"HOME", folder.path().string()},
                 {"AWS_EC2_METADATA_DISABLED", "true"},
                 {"AWS_PROFILE", "work"},
                 {"AWS_ENDPOINT_URL", server->url("")}};
    write(".aws/config", kSession);
  }
  static void SetUpTestSuite() { server = std::make_unique<TestServer>("s3_server.py"); }
  static void TearDownTestSuite() { server.reset(); }

  static std::string token(const std::string& access, const std::string& expires, const std::string& more = "") {
    return R"({"accessToken": ")" + access + R"(", "expiresAt": ")" + expires + "\"" + more + "}";
  }

  static inline std::unique_ptr<TestServer> server;
};

constexpr const char* kRenewable = R"(, "clientId": "c", "clientSecret": "s", "refreshToken": "again", "kept": 1)";
constexpr const char* kSignIn = "| aws sso login --profile work";

TEST_F(AwsSso, GivesKeysForTheSignInOfASession) {
  write(kOfSession, token("signed in", "2199-01-01T00:00:00Z"));
  EXPECT_EQ(credentials().access_key, "fresh");
  EXPECT_EQ(credentials().session_token, "trainer of 123456789012");
  EXPECT_GT(credentials().expires, settings.clock() + std::chrono::minutes(50));
}

TEST_F(AwsSso, GivesKeysForAProfileOfTheOldKind) {
  write(".aws/config",
        "[profile work]\nsso_account_id = 1\nsso_role_name = r\nsso_region = eu-west-1\n"
        "sso_start_url = https://corp.example/start\n");
  write(kOfStartUrl, token("signed in", "2199-01-01T00:00:00UTC"));
  EXPECT_EQ(credentials().session_token, "r of 1");
}

TEST_F(AwsSso, TakesTheSignInNowhereElse) {
  write(".aws/config", std::string(kSession) + "[profile other]\nsso_session = corp\nsso_account_id = 1\n" +
                           "sso_role_name = moved\n");
  write(kOfSession, token("signed in", "2199-01-01T00:00:00Z"));
  variables["AWS_PROFILE"] = "other";
  EXPECT_TRUE(holds(error(), "302")) << error();
}

TEST_F(AwsSso, MayBeTheSourceOfARole) {
  write(".aws/config", std::string(kSession) + "[profile role]\nrole_arn = arn:x\nsource_profile = work\n");
  write(kOfSession, token("signed in", "2199-01-01T00:00:00Z"));
  variables["AWS_PROFILE"] = "role";
  variables["AWS_REGION"] = "us-east-1";
  EXPECT_EQ(credentials().session_token, "arn:x");
}

TEST_F(AwsSso, RenewsASignInThatEndsAndKeepsIt) {
  write(kOfSession, token("too old", "2001-01-01T00:00:00Z", kRenewable));
  EXPECT_EQ(credentials().access_key, "fresh");
  const Json kept = Json::parse(read_file(folder / kOfSession), "the cache");
  EXPECT_EQ(kept.at("accessToken").as_string(), "renewed");
  EXPECT_EQ(kept.at("refreshToken").as_string(), "and again");
  EXPECT_EQ(kept.at("kept").as_integer(), 1);
  const auto permissions = std::filesystem::status(folder / kOfSession).permissions();
  EXPECT_EQ(permissions, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(AwsSso, NamesTheCommandWhereOnlyAPersonCanSignIn) {
  EXPECT_TRUE(holds(error(), "nobody is signed in") && holds(error(), kSignIn)) << error();
  write(kOfSession, token("signed in", "2001-01-01T00:00:00Z"));
  EXPECT_TRUE(holds(error(), "has expired") && holds(error(), kSignIn)) << error();
  write(kOfSession, token("too old", "2001-01-01T00:00:00Z",
                          R"(, "clientId": "c", "clientSecret": "s", "refreshToken": "used up")"));
  EXPECT_TRUE(holds(error(), "has expired") && holds(error(), kSignIn)) << error();
  write(kOfSession, token("signed out", "2199-01-01T00:00:00Z"));
  EXPECT_TRUE(holds(error(), "no longer valid") && holds(error(), kSignIn)) << error();
}

// A program that goes on tells it from settings that no later look mends.
TEST_F(AwsSso, SaysWhetherASignInCanMendIt) {
  const auto is_mended_by_sign_in = [this] {
    try {
      credentials();
    } catch (const NoCredentials&) {
      return true;
    } catch (const Error&) {
      return false;
    }
    return false;
  };
  EXPECT_TRUE(is_mended_by_sign_in());
  const std::string expired = token("signed in", "2001-01-01T00:00:00Z"), refused = token("no", "2199-01-01T00:00:00Z");
  for (const std::string& cached : {expired, refused, std::string(R"({"accessToken": "half)"), std::string()}) {
    write(kOfSession, cached);
    EXPECT_TRUE(is_mended_by_sign_in()) << cached;
    EXPECT_TRUE(holds(error(), kSignIn)) << error();
  }
  write(".aws/config", "[profile work]\nsso_session = corp\n");
  EXPECT_FALSE(is_mended_by_sign_in());
}

TEST_F(AwsSso, NamesWhatTheProfileLacks) {
  write(".aws/config", "[profile work]\nsso_session = corp\n");
  EXPECT_TRUE(holds(error(), "no sso_region") && holds(error(), "aws configure sso --profile work")) << error();
}

}  // namespace
}  // namespace dtrain::net
