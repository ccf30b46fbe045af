// What the parts of ObjectStore share.
#pragma once

#include <dtrain/net/objects.hpp>

#include "places.hpp"

namespace dtrain::net {

struct ByteRange {
  std::uint64_t first = 0, size = 0;
};
// `begin` is where in the range the piece begins. The piece is valid during the call only.
using TakePiece = std::function<void(std::uint64_t begin, ByteView piece)>;

struct ObjectStore::State {
  State(AwsSettings settings, ObjectLimits the_limits)
      : limits(the_limits), client(kS3, std::move(settings), limits.tries), places(client.settings()) {}

  // Fills in where the request goes, follows the bucket to its region, and names the URL in every error. A sink of it
  // must not mind a try that begins anew.
  AwsAnswer call(const std::string& url, const AwsRequest& shape);
  // The bytes of one range, resumed until they are whole, each piece given once and in order.
  void read_range(const std::string& url, const ObjectState& pinned, ByteRange range, const TakePiece& take);
  [[noreturn]] void tell_replaced(const std::string& url, const ObjectState& pinned, std::optional<ObjectState> seen);
  ObjectState look(const std::string& url);
  ObjectState ask(const std::string& url, const char* method, HttpField header);
  std::optional<ObjectState> head(const std::string& url);
  std::optional<ObjectState> find(const std::string& url);  // as ObjectStore::find

  ObjectLimits limits;
  AwsClient client;
  ObjectPlaces places;
};

// Throws UsageError for a URL that names no object behind s3://, such as a bucket alone.
void require_object(const std::string& url);

// Puts what `shape` asks for into the request that leads to the right place.
AwsRequest placed(ObjectPlaces& places, const std::string& url, const AwsRequest& shape);
// The same error, beginning with the URL that a person knows.
AwsError named(const std::string& url, const AwsError& error);

// "bytes 0-99/1000"; nullopt when it is something else.
struct ContentRange {
  std::uint64_t first = 0, total = 0;
};
std::optional<ContentRange> parse_content_range(std::string_view value);

}  // namespace dtrain::net
