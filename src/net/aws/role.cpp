#include "role.hpp"

#include <fmt/format.h>
#include <pugixml.hpp>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "instance.hpp"
#include "sigv4.hpp"

namespace dtrain::net {
namespace {

constexpr const char* kVersion = "2011-06-15";
constexpr const char* kUsualSession = "dtrain";

AwsCredentials parse_answer(const std::string& xml, const std::string& role) {
  pugi::xml_document document;
  document.load_buffer(xml.data(), xml.size());
  const pugi::xml_node found = document.document_element().first_child().child("Credentials");
  AwsCredentials credentials{.access_key = found.child_value("AccessKeyId"),
                             .secret_key = found.child_value("SecretAccessKey"),
                             .session_token = found.child_value("SessionToken"),
                             .expires = time_of(found.child_value("Expiration")),
                             .source = "role " + role};
  if (credentials.access_key.empty() || credentials.secret_key.empty()) {
    throw DataError(fmt::format("the answer for the role {} holds no keys", role),
                    "check that the endpoint of STS (AWS_ENDPOINT_URL_STS) is one");
  }
  return credentials;
}

// Without `source` the call is not signed: its parameters prove who asks.
AwsCredentials ask(const AwsSettings& settings, const std::string& role, std::vector<HttpField> parameters,
                   const std::optional<AwsCredentials>& source) {
  AwsSettings asking = settings;
  const auto delegated = std::make_shared<DelegatedCredentials>();
  if (source) delegated->take(*source);
  asking.delegated = delegated;
  AwsClient client(kSts, asking);
  parameters.emplace_back("Version", kVersion);
  parameters.emplace_back("RoleArn", role);
  const std::string region = aws_region(settings), body = encode_query(parameters);
  const AwsAnswer answer =
      client.call({.method = "POST",
                   .endpoint = aws_endpoint(kSts, region, settings).url,
                   .headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}},
                   .body = bytes_of(body),
                   .region = region,
                   .sign = source.has_value()});
  return parse_answer(answer.body, role);
}

std::string or_usual(const std::string& name) { return name.empty() ? kUsualSession : name; }

}  // namespace

AwsCredentials assume_role(const AwsSettings& settings, const AwsProfile& profile, const AwsCredentials& source) {
  std::vector<HttpField> parameters{{"Action", "AssumeRole"},
                                    {"RoleSessionName", or_usual(profile.value("role_session_name"))}};
  if (const std::string id = profile.value("external_id"); !id.empty()) parameters.emplace_back("ExternalId", id);
  if (const std::string time = profile.value("duration_seconds"); !time.empty()) {
    parameters.emplace_back("DurationSeconds", time);
  }
  return ask(settings, profile.value("role_arn"), std::move(parameters), source);
}

AwsCredentials assume_role(const AwsSettings& settings, const WebIdentity& identity) {
  return ask(settings, identity.role,
             {{"Action", "AssumeRoleWithWebIdentity"},
              {"RoleSessionName", or_usual(identity.session_name)},
              {"WebIdentityToken", std::string(trim(read_file(identity.token_file)))}},
             std::nullopt);
}

}  // namespace dtrain::net
