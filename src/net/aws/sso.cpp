// Format of the cached token, its name and the two calls: the AWS SDKs and Tools Reference Guide, "IAM Identity Center
// credential provider"; the API references of IAM Identity Center's portal and OIDC.
#include "sso.hpp"

#include <fmt/format.h>

#include <filesystem>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/json.hpp>

#include "instance.hpp"
#include "sigv4.hpp"

namespace dtrain::net {
namespace {

constexpr AwsService kPortal{.name = "portal.sso", .variable = "SSO"};
constexpr AwsService kOidc{.name = "oidc", .variable = "SSO_OIDC"};
constexpr auto kRenewBefore = std::chrono::minutes(15);

struct SignIn {
  std::string region, start_url, account, role;
  Path cache;  // of its token
};

NoCredentials not_signed_in(const AwsProfile& profile, const std::string& why) {
  return NoCredentials(fmt::format("AWS profile {}: {}", profile.name, why), "aws sso login --profile " + profile.name);
}

SignIn sign_in_of(const AwsSettings& settings, const AwsProfile& profile) {
  const std::string session = profile.value("sso_session");
  const auto value = [&](const char* key) {
    std::string text = profile.session_value(session, key);
    if (!text.empty()) return text;
    throw UsageError(fmt::format("AWS profile {}: signs in through a browser (SSO), but has no {}", profile.name, key),
                     "aws configure sso --profile " + profile.name);
  };
  SignIn found{.region = value("sso_region"),
               .start_url = value("sso_start_url"),
               .account = value("sso_account_id"),
               .role = value("sso_role_name"),
               .cache = {}};
  const std::string& key = session.empty() ? found.start_url : session;
  found.cache =
      Path(settings.environment("HOME").value_or("")) / ".aws/sso/cache" / (sha1_hex(bytes_of(key)) + ".json");
  return found;
}

Json cached_token(const SignIn& sign_in, const AwsProfile& profile) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(sign_in.cache, error)) throw not_signed_in(profile, "nobody is signed in");
  Json token;
  try {
    token = Json::parse(read_file(sign_in.cache), sign_in.cache.string());
  } catch (const Error& unreadable) {  // for one, `aws sso login` is writing it
    throw not_signed_in(profile, unreadable.what());
  }
  if (token.find_text("accessToken").empty()) throw not_signed_in(profile, sign_in.cache.string() + " holds no token");
  return token;
}

bool lives_until(const Json& token, WallTime time) {
  const auto end = time_of(token.find_text("expiresAt"));
  return end && *end > time;
}

// False: it cannot be renewed, only a person can sign in again.
bool renew(Json& token, const SignIn& sign_in, const AwsSettings& settings) {
  for (const char* key : {"refreshToken", "clientId", "clientSecret"}) {
    if (token.find_text(key).empty()) return false;
  }
  const Json asked = Json::object({{"grantType", "refresh_token"},
                                   {"clientId", token.find_text("clientId")},
                                   {"clientSecret", token.find_text("clientSecret")},
                                   {"refreshToken", token.find_text("refreshToken")}});
  const std::string body = asked.dump();
  AwsClient client(kOidc, settings);
  Json given;
  try {
    const AwsAnswer answer = client.call({.method = "POST",
                                          .endpoint = aws_endpoint(kOidc, sign_in.region, settings).url,
                                          .path = "/token",
                                          .headers = {{"Content-Type", "application/json"}},
                                          .body = bytes_of(body),
                                          .region = sign_in.region,
                                          .sign = false,
                                          .purpose = "renew the sign-in"});
    given = Json::parse(answer.body, "the answer of SSO's OIDC");
  } catch (const RemoteError&) {
    return false;  // what there is may still live for some minutes
  }
  token["accessToken"] = given.at("accessToken").as_string();
  if (const std::string next = given.find_text("refreshToken"); !next.empty()) token["refreshToken"] = next;
  token["expiresAt"] = time_text(settings.clock() + std::chrono::seconds(given.at("expiresIn").as_integer()));
  write_file_atomic(sign_in.cache, token.dump(), 0600);
  return true;
}

std::string valid_token(const AwsSettings& settings, const AwsProfile& profile, const SignIn& sign_in) {
  Json token = cached_token(sign_in, profile);
  const WallTime now = settings.clock();
  if (!lives_until(token, now + kRenewBefore) && !renew(token, sign_in, settings) && !lives_until(token, now)) {
    throw not_signed_in(profile, "its sign-in through a browser (SSO) has expired");
  }
  return token.find_text("accessToken");
}

AwsCredentials keys_from(const std::string& answer, const SignIn& sign_in) {
  const Json document = Json::parse(answer, "the answer of SSO");
  const Json& keys = document.at("roleCredentials");
  const auto milliseconds = std::chrono::milliseconds(keys.at("expiration").as_integer());
  return {.access_key = keys.at("accessKeyId").as_string(),
          .secret_key = keys.at("secretAccessKey").as_string(),
          .session_token = keys.at("sessionToken").as_string(),
          .expires = WallTime(milliseconds),
          .source = fmt::format("SSO role {} of {}", sign_in.role, sign_in.account)};
}

}  // namespace

bool signs_in_by_sso(const AwsProfile& profile) {
  return !profile.value("sso_session").empty() || !profile.value("sso_start_url").empty();
}

AwsCredentials sso_credentials(const AwsSettings& settings, const AwsProfile& profile) {
  AwsSettings asking = settings;
  asking.delegated = std::make_shared<DelegatedCredentials>();  // these calls need none
  const SignIn sign_in = sign_in_of(asking, profile);
  const std::string token = valid_token(asking, profile, sign_in);
  AwsClient client(kPortal, asking);
  const auto query = encode_query({{"role_name", sign_in.role}, {"account_id", sign_in.account}});
  try {
    const AwsAnswer answer = client.call({.endpoint = aws_endpoint(kPortal, sign_in.region, asking).url,
                                          .path = "/federation/credentials?" + query,
                                          .headers = {{"x-amz-sso_bearer_token", token}},
                                          .region = sign_in.region,
                                          .sign = false,
                                          .purpose = "get keys for the role " + sign_in.role});
    return keys_from(answer.body, sign_in);
  } catch (const AwsError& error) {
    if (error.facts().status != 401) throw;
    throw not_signed_in(profile, "its sign-in through a browser (SSO) is no longer valid");
  }
}

}  // namespace dtrain::net
