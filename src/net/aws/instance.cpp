#include "instance.hpp"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>

#include <dtrain/base/clock.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/releaser.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/instance_metadata.hpp>

#include "http/exchange.hpp"
#include "profile.hpp"

namespace dtrain::net {
namespace {

constexpr auto kInstanceTimeout = std::chrono::milliseconds(1000);
constexpr auto kContainerTimeout = std::chrono::milliseconds(2000);
constexpr int kContainerTries = 3;
constexpr auto kContainerPause = std::chrono::milliseconds(500);  // between two tries

// A part of the URL as libcurl, which will ask it, reads it; empty: it has none, or is no URL.
std::string part_of(const std::string& url, CURLUPart part) {
  const std::unique_ptr<CURLU, Releaser<curl_url_cleanup>> parsed(curl_url());
  char* text = nullptr;
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK) return {};
  if (curl_url_get(parsed.get(), part, &text, 0) != CURLUE_OK) return {};
  std::string result = text;
  curl_free(text);
  return result;
}

// Only places that the credentials' token may be sent to without encryption.
bool may_be_asked(const std::string& url) {
  const std::string scheme = part_of(url, CURLUPART_SCHEME), host = part_of(url, CURLUPART_HOST);
  if (scheme == "https") return true;
  if (scheme != "http") return false;
  if (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos) return true;
  constexpr std::array<std::string_view, 5> kAllowed{"localhost", "[::1]", "169.254.170.2", "169.254.170.23",
                                                     "[fd00:ec2::23]"};
  return std::find(kAllowed.begin(), kAllowed.end(), host) != kAllowed.end();
}

struct ContainerEndpoint {
  const char* variable;  // that names it
  std::string url;

  NoCredentials refuse(const std::string& why) const {
    return NoCredentials(fmt::format("no credentials of the container: {}: {}", url, why),
                         fmt::format("correct {} or the service that it names, or unset it", variable));
  }
};

// nullopt: none is configured.
std::optional<ContainerEndpoint> container_endpoint(const AwsSettings& settings) {
  constexpr const char *kRelative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                       *kFull = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
  if (const auto path = variable_of(settings, kRelative)) {
    return ContainerEndpoint{kRelative, "http://169.254.170.2" + *path};
  }
  if (auto url = variable_of(settings, kFull)) return ContainerEndpoint{kFull, std::move(*url)};
  return std::nullopt;
}

std::optional<std::string> container_token(const AwsSettings& settings) {
  if (const auto file = variable_of(settings, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")) {
    return std::string(trim(read_file(*file)));
  }
  return variable_of(settings, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
}

InstanceMetadata metadata_of(const AwsSettings& settings) {
  std::string url = variable_of(settings, "AWS_EC2_METADATA_SERVICE_ENDPOINT").value_or("");
  const bool six = variable_of(settings, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE").value_or("") == "IPv6";
  if (url.empty()) url = six ? "http://[fd00:ec2::254]" : kInstanceMetadataUrl;
  return InstanceMetadata({.url = url, .deadline = kInstanceTimeout, .stop_on_signal = true});
}

bool metadata_is_off(const AwsSettings& settings) {
  return variable_of(settings, "AWS_EC2_METADATA_DISABLED").value_or("") == "true";
}

}  // namespace

std::optional<WallTime> time_of(const std::string& text) {
  const auto time = unix_time_of(text);
  return time ? std::optional(WallTime(*time)) : std::nullopt;
}

std::string time_text(WallTime time) {
  return utc_text(std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()));
}

std::string credentials_text(const AwsCredentials& credentials) {
  Json document = Json::object({{"AccessKeyId", credentials.access_key},
                                {"SecretAccessKey", credentials.secret_key},
                                {"Token", credentials.session_token}});
  if (credentials.expires) document["Expiration"] = time_text(*credentials.expires);
  return document.dump();
}

// A document with AccessKeyId, SecretAccessKey, Token or SessionToken, and Expiration, as AWS gives them everywhere.
AwsCredentials credentials_from(std::string_view text, std::string source) {
  const Json document = Json::parse(text, source);
  AwsCredentials found{.access_key = document.find_text("AccessKeyId"),
                       .secret_key = document.find_text("SecretAccessKey"),
                       .session_token = document.find_text("Token"),
                       .expires = time_of(document.find_text("Expiration")),
                       .source = std::move(source)};
  if (found.session_token.empty()) found.session_token = document.find_text("SessionToken");
  if (found.access_key.empty() || found.secret_key.empty()) {
    throw DataError(fmt::format("{}: holds no AccessKeyId and SecretAccessKey", found.source));
  }
  return found;
}

CredentialsFound container_credentials(const AwsSettings& settings) {
  const auto endpoint = container_endpoint(settings);
  if (!endpoint) return {{}, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and _FULL_URI are not set"};
  const std::string& url = endpoint->url;
  if (!may_be_asked(url)) throw endpoint->refuse("it is neither https nor an address of this machine");
  Exchange request{.url = url,
                   .connect_timeout = kContainerTimeout,
                   .whole_timeout = kContainerTimeout,
                   .direct = url.starts_with("http://")};
  if (const auto token = container_token(settings)) request.headers.emplace_back("Authorization", *token);
  HttpConnections connections;
  ExchangeResult result;
  for (int i = 0; i < kContainerTries; ++i) {
    if (i > 0) (void)pause_unless_stopped(kContainerPause);
    result = connections.exchange(request);
    if (result.failure.empty() && result.answer.status == 200) {
      return {credentials_from(result.answer.body, "container " + url), {}};
    }
  }
  throw endpoint->refuse(result.failure.empty() ? fmt::format("status {}", result.answer.status) : result.failure);
}

CredentialsFound instance_credentials(const AwsSettings& settings) {
  if (metadata_is_off(settings)) return {{}, "AWS_EC2_METADATA_DISABLED is true"};
  InstanceMetadata metadata = metadata_of(settings);
  const std::string folder = "meta-data/iam/security-credentials/";
  std::string name, document;
  try {
    name = trim(metadata.get(folder));
    document = metadata.get(folder + name);
  } catch (const RemoteError& error) {
    return {{}, error.what()};
  }
  return {credentials_from(document, "instance role " + name), {}};
}

std::optional<std::string> instance_region(const AwsSettings& settings) {
  if (metadata_is_off(settings)) return std::nullopt;
  try {
    return metadata_of(settings).get("meta-data/placement/region");
  } catch (const RemoteError&) {
    return std::nullopt;
  }
}

}  // namespace dtrain::net
