#include "sigv4.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <map>

#include <dtrain/base/hash.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::net {
namespace {

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.' || c == '~';
}

std::string encode(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c) || kept.find(c) != kept.npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

// Without blanks at both ends, each run of them inside as one.
std::string squeeze(std::string_view text) {
  std::string out;
  for (const char c : trim(text)) {
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (!blank) out += c;
    if (blank && !out.ends_with(' ')) out += ' ';
  }
  return out;
}

std::map<std::string, std::string> canonical_headers(const RequestToSign& request) {
  std::map<std::string, std::string> headers;
  for (const auto& [name, value] : request.headers) {
    const auto [place, is_new] = headers.try_emplace(lower_case(name), squeeze(value));
    if (!is_new) place->second.append(",").append(squeeze(value));
  }
  return headers;
}

std::string signed_names(const std::map<std::string, std::string>& headers) {
  std::vector<std::string> names;
  for (const auto& [name, value] : headers) names.push_back(name);
  return join(names, ";");
}

// Dots resolved and double slashes as one, as botocore does it.
std::string without_dots(std::string_view path) {
  std::vector<std::string> kept;
  for (const std::string& part : split(path, '/')) {
    if (part == ".." && !kept.empty()) kept.pop_back();
    if (!part.empty() && part != "." && part != "..") kept.push_back(part);
  }
  return fmt::format("/{}{}", join(kept, "/"), path.ends_with('/') && !kept.empty() ? "/" : "");
}

std::string scope(const SigningKey& key) {
  return fmt::format("{}/{}/{}/aws4_request", key.time.substr(0, 8), key.region, key.service);
}

std::string derived_key(const SigningKey& key) {
  std::string derived = hmac_sha256("AWS4" + key.secret_key, key.time.substr(0, 8));
  for (const std::string_view part :
       {std::string_view(key.region), std::string_view(key.service), std::string_view("aws4_request")}) {
    derived = hmac_sha256(derived, part);
  }
  return derived;
}

}  // namespace

std::string encode_component(std::string_view text) { return encode(text, ""); }

std::string encode_path(std::string_view text) { return encode(text, "/"); }

std::string encode_query(const std::vector<HttpField>& query) {
  std::vector<HttpField> encoded;
  for (const auto& [name, value] : query) encoded.emplace_back(encode_component(name), encode_component(value));
  std::sort(encoded.begin(), encoded.end());
  std::vector<std::string> parts;
  for (const auto& [name, value] : encoded) parts.push_back(name + "=" + value);
  return join(parts, "&");
}

std::string canonical_path(std::string_view encoded, bool as_sent) {
  if (encoded.empty()) return "/";
  return as_sent ? std::string(encoded) : encode_path(without_dots(encoded));
}

std::string canonical_request(const RequestToSign& request) {
  const auto headers = canonical_headers(request);
  std::string lines;
  for (const auto& [name, value] : headers) lines += name + ":" + value + "\n";
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.path, request.query, lines,
                     signed_names(headers), request.payload_hash);
}

std::string string_to_sign(const RequestToSign& request, const SigningKey& key) {
  return fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", key.time, scope(key),
                     sha256_hex(bytes_of(canonical_request(request))));
}

std::string authorization(const RequestToSign& request, const SigningKey& key) {
  return fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}", key.access_key, scope(key),
                     signed_names(canonical_headers(request)),
                     to_hex(hmac_sha256(derived_key(key), string_to_sign(request, key))));
}

std::string amazon_time(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace dtrain::net
