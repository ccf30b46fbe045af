#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/http.hpp>

#include "aws/problem.hpp"
#include "checksum.hpp"
#include "store_state.hpp"

namespace dtrain::net {
namespace {

constexpr int kMaxMoves = 3;
constexpr long kWhole = 200;  // where a part was asked for it would be 206

// Ends the transfer where a server sends all of an object in place of its first byte.
struct WholeObject {
  AwsAnswer head;
};

std::uint64_t size_in(const std::string& url, const AwsAnswer& answer) {
  const auto range = parse_content_range(answer.header("content-range"));
  if (range) return range->total;
  const auto length = parse_integer(answer.header("content-length"));
  if (length && *length >= 0) return static_cast<std::uint64_t>(*length);
  throw RemoteError(fmt::format("{}: the server does not say how long it is", shown_url(url)), "download it first");
}

// How many parts a checksum is over stands behind it, "...-3"; some servers say it in the ETag alone.
std::string checksum_in(const AwsAnswer& answer) {
  std::string checksum = answer.header("x-amz-checksum-crc32c");
  const std::string etag = answer.header("etag");
  const std::size_t dash = etag.rfind('-');
  const bool whole = answer.header("x-amz-checksum-type") == "FULL_OBJECT" || dash == etag.npos;
  if (checksum.empty() || whole || checksum.find('-') != checksum.npos) return checksum;
  return checksum + etag.substr(dash, etag.find('"', dash) - dash);
}

}  // namespace

void require_object(const std::string& url) {
  if (parse_s3_url(url).key.empty()) throw UsageError(url + ": names no object", "write s3://BUCKET/KEY");
}

AwsRequest placed(ObjectPlaces& places, const std::string& url, const AwsRequest& shape) {
  AwsRequest request = places.request_for(url);
  request.method = shape.method;
  request.query = shape.query;
  request.headers = shape.headers;
  request.body = shape.body;
  request.error_in_success = shape.error_in_success;
  request.sink = shape.sink;
  return request;
}

AwsError named(const std::string& url, const AwsError& error) { return error_of(shown_url(url), error.facts()); }

std::optional<ContentRange> parse_content_range(std::string_view value) {
  const std::size_t space = value.find(' '), dash = value.find('-'), slash = value.find('/');
  if (space == value.npos || dash == value.npos || slash == value.npos) return std::nullopt;
  const auto first = parse_integer(value.substr(space + 1, dash - space - 1));
  const auto total = parse_integer(value.substr(slash + 1));
  if (!first || !total || *first < 0 || *total < 0) return std::nullopt;
  return ContentRange{static_cast<std::uint64_t>(*first), static_cast<std::uint64_t>(*total)};
}

AwsAnswer ObjectStore::State::call(const std::string& url, const AwsRequest& shape) {
  for (int moves = 0;; ++moves) {
    try {
      const AwsRequest request = placed(places, url, shape);
      for (AwsClient::Tries tries(client);;) {
        if (auto answer = tries.attempt(request)) return std::move(*answer);
      }
    } catch (const AwsError& error) {
      if (moves == kMaxMoves || !places.learn(url, error.facts())) throw named(url, error);
    }
  }
}

ObjectState ObjectStore::State::ask(const std::string& url, const char* method, HttpField header) {
  if (is_s3_url(url)) require_object(url);  // a bucket answers too, as if it were an empty object
  AwsRequest shape{.method = method, .headers = {std::move(header)}};
  shape.sink = [](const AwsAnswer& head, ByteView) {
    if (head.status == kWhole) throw WholeObject{head};
  };
  const auto state_in = [&](const AwsAnswer& head) {
    const std::string etag = head.header("etag"), changed = head.header("last-modified");
    return ObjectState{size_in(url, head), etag, checksum_in(head), etag.empty() ? changed : std::string()};
  };
  try {
    return state_in(call(url, shape));
  } catch (const WholeObject& object) {
    return state_in(object.head);
  }
}

// nullopt: refused without a word why, as the body of such an answer would have it.
std::optional<ObjectState> ObjectStore::State::head(const std::string& url) try {
  return ask(url, "HEAD", {"x-amz-checksum-mode", "ENABLED"});
} catch (const AwsError& error) {
  if (error.facts().status == 0 || !error.facts().code.empty()) throw;
  return std::nullopt;
}

ObjectState ObjectStore::State::look(const std::string& url) {
  // A URL that is signed for GET answers no HEAD.
  if (is_s3_url(url)) {
    if (const auto state = head(url)) return *state;
  }
  return ask(url, "GET", {"Range", "bytes=0-0"});
}

std::optional<ObjectState> ObjectStore::State::find(const std::string& url) try {
  return is_s3_url(url) ? ask(url, "HEAD", {"x-amz-checksum-mode", "ENABLED"}) : look(url);
} catch (const AwsError& error) {
  if (error.facts().problem == AwsProblem::not_found) return std::nullopt;
  if (error.facts().code.empty() && error.facts().status != 0) return look(url);  // says why
  throw;
}

ObjectStore::ObjectStore(AwsSettings settings, ObjectLimits limits)
    : state_(std::make_unique<State>(std::move(settings), limits)) {}
ObjectStore::~ObjectStore() = default;

ObjectState ObjectStore::state(const std::string& url) { return state_->look(url); }

std::optional<ObjectState> ObjectStore::find(const std::string& url) { return state_->find(url); }

void ObjectStore::put(const std::string& url, ByteView content) {
  state_->call(url, {.method = "PUT", .headers = {{"x-amz-checksum-crc32c", checksum_text(content)}}, .body = content});
}

void ObjectStore::remove(const std::string& url) {
  try {
    state_->call(url, {.method = "DELETE"});
  } catch (const AwsError& error) {
    if (error.facts().problem != AwsProblem::not_found) throw;
  }
}

}  // namespace dtrain::net
