// AWS Signature Version 4: pure functions from a request to the header that signs it (docs.aws.amazon.com, "Create a
// signed AWS API request").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <dtrain/net/aws.hpp>

namespace dtrain::net {

inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";

// RFC 3986: all but A-Z a-z 0-9 - _ . ~ becomes %XX, upper case. A path keeps its slashes.
std::string encode_component(std::string_view text);
std::string encode_path(std::string_view text);
// Sorted by encoded name, then value; "name=" where there is no value.
std::string encode_query(const std::vector<HttpField>& query);

struct SigningKey {
  std::string access_key, secret_key;
  std::string time;  // "20150830T123600Z"
  std::string region, service;
};

struct RequestToSign {
  std::string method;
  std::string path;   // as the service canonicalises it: see canonical_path
  std::string query;  // encoded and sorted
  // All of these are signed, host among them. Any order and case; repeated names are joined.
  std::vector<HttpField> headers;
  std::string payload_hash;  // lower-case hex of SHA-256, or kUnsignedPayload
};

// The canonical form of a path that is encoded once already. Services other than S3 want dots and double slashes
// resolved and the whole encoded again.
std::string canonical_path(std::string_view encoded, bool as_sent);
std::string canonical_request(const RequestToSign& request);
std::string string_to_sign(const RequestToSign& request, const SigningKey& key);
// The value of the Authorization header.
std::string authorization(const RequestToSign& request, const SigningKey& key);

// "20150830T123600Z"
std::string amazon_time(WallTime time);

}  // namespace dtrain::net
