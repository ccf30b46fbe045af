#include "places.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::net {
namespace {

constexpr const char* kRegionOfOthers = "us-east-1";

// Names with dots match no certificate as a part of the host.
bool fits_a_host(std::string_view bucket) {
  return bucket.size() >= 3 && bucket.size() <= 63 && std::all_of(bucket.begin(), bucket.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

// Servers other than AWS's rarely need a region, and users who name one rarely set it.
std::string region_of(const AwsSettings& settings) {
  try {
    return aws_region(settings);
  } catch (const UsageError&) {
    if (!aws_endpoint(kS3, kRegionOfOthers, settings).custom) throw;
    return kRegionOfOthers;
  }
}

}  // namespace

bool is_s3_url(std::string_view text) { return text.starts_with("s3://"); }

bool is_object_url(std::string_view text) {
  return is_s3_url(text) || text.starts_with("http://") || text.starts_with("https://");
}

S3Url parse_s3_url(std::string_view text) {
  const std::string_view rest = is_s3_url(text) ? text.substr(5) : std::string_view();
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  if (slash == 0) throw UsageError(fmt::format("\"{}\" is no s3:// URL", text), "write s3://BUCKET/KEY");
  return {std::string(rest.substr(0, slash)), std::string(rest.substr(std::min(slash + 1, rest.size())))};
}

ObjectPlaces::Place ObjectPlaces::standard_place(const std::string& bucket, const std::string& region) const {
  const AwsEndpoint endpoint = aws_endpoint(kS3, region, settings_);
  Place place{region, endpoint.url, endpoint.custom || !fits_a_host(bucket)};
  if (!place.path_style) place.endpoint.insert(place.endpoint.find("://") + 3, bucket + ".");
  return place;
}

ObjectPlaces::Place ObjectPlaces::place_of(const std::string& bucket) {
  const MutexLock lock(mutex_);
  const auto known = places_.find(bucket);
  if (known != places_.end()) return known->second;
  return places_[bucket] = standard_place(bucket, region_of(settings_));
}

AwsRequest ObjectPlaces::request_for(const std::string& url) {
  AwsRequest request;
  if (!is_s3_url(url)) {
    const std::size_t path = url.find('/', url.find("://") + 3);
    request.endpoint = url.substr(0, path);
    request.path = path == url.npos ? "/" : url.substr(path);
    request.sign = false;
    request.follow_redirects = true;
    return request;
  }
  const S3Url object = parse_s3_url(url);
  const Place place = place_of(object.bucket);
  request.endpoint = place.endpoint;
  request.region = place.region;
  request.path = place.path_style ? fmt::format("/{}/{}", object.bucket, object.key) : "/" + object.key;
  return request;
}

bool ObjectPlaces::learn(const std::string& url, const AwsError::Facts& facts) {
  if (!is_s3_url(url) || facts.problem != AwsProblem::wrong_region) return false;
  const std::string bucket = parse_s3_url(url).bucket;
  const Place before = place_of(bucket);
  Place now = facts.region.empty() || facts.region == before.region ? before : standard_place(bucket, facts.region);
  // A bucket so new that names do not lead to it yet. What was encrypted stays so, wherever it is sent.
  const bool stays_encrypted = facts.endpoint.starts_with("https://") || !before.endpoint.starts_with("https://");
  if (!facts.endpoint.empty() && stays_encrypted) now.endpoint = facts.endpoint;
  if (now.region == before.region && now.endpoint == before.endpoint) return false;
  const MutexLock lock(mutex_);
  places_[bucket] = now;
  return true;
}

}  // namespace dtrain::net
