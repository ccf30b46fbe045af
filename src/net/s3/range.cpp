#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/http.hpp>

#include "aws/problem.hpp"
#include "store_state.hpp"

namespace dtrain::net {
namespace {

// A try that brought so much was no failure in a row, however it ended.
constexpr std::uint64_t kGoodProgress = 64 << 10;
constexpr int kMaxMoves = 3;

// What came of the range so far, over all tries.
struct Arrived {
  const std::string& url;
  const ObjectState& pinned;
  ByteRange range;
  const TakePiece& give;
  std::uint64_t count = 0;
  bool ignored_range = false;
  std::optional<ObjectState> replaced_by{};

  // False: the answer is of no use, and why is noted.
  bool fits(const AwsAnswer& head) {
    const std::string etag = head.header("etag"), changed = head.header("last-modified");
    const auto sent = parse_content_range(head.header("content-range"));
    const bool whole = head.status == 200 && range.first + count == 0 && range.size == pinned.size;
    const auto length = whole ? parse_integer(head.header("content-length")) : std::nullopt;
    const std::uint64_t size = sent ? sent->total : static_cast<std::uint64_t>(length.value_or(pinned.size));
    const bool other_time = !pinned.last_modified.empty() && !changed.empty() && changed != pinned.last_modified;
    ignored_range = !whole && (!sent || sent->first != range.first + count);
    if ((!pinned.etag.empty() && etag != pinned.etag) || other_time || size != pinned.size)
      replaced_by = ObjectState{.size = size, .etag = etag, .last_modified = changed};
    return !replaced_by && !ignored_range;
  }

  void take(ByteView piece) {
    const std::uint64_t wanted = std::min<std::uint64_t>(piece.size(), range.size - count);
    give(count, piece.first(wanted));
    count += wanted;
  }
};

// Ends the transfer of an answer that is of no use.
struct Useless {};

// What tells the two versions apart.
std::string difference(const ObjectState& pinned, const ObjectState& now) {
  if (!pinned.etag.empty()) return fmt::format("its ETag was {}, now it is {}", pinned.etag, now.etag);
  if (pinned.size != now.size) return fmt::format("it had {} bytes, now it has {}", pinned.size, now.size);
  return fmt::format("it was last changed {}, now {}", pinned.last_modified, now.last_modified);
}

AwsRequest request_of(const Arrived& arrived) {
  AwsRequest request;
  const std::uint64_t first = arrived.range.first + arrived.count;
  const std::uint64_t last = arrived.range.first + arrived.range.size - 1;
  request.headers.emplace_back("Range", fmt::format("bytes={}-{}", first, last));
  const std::string& etag = arrived.pinned.etag;
  if (!etag.empty() && !etag.starts_with("W/")) request.headers.emplace_back("If-Match", etag);
  return request;
}

}  // namespace

void ObjectStore::State::tell_replaced(const std::string& url, const ObjectState& pinned,
                                       std::optional<ObjectState> seen) {
  const ObjectState now = seen && (pinned.etag.empty() || !seen->etag.empty()) ? *seen : look(url);
  throw DataError(fmt::format("{}: was replaced while it was read: {}", shown_url(url), difference(pinned, now)),
                  "begin again with the new object, or put the old one back");
}

void ObjectStore::State::read_range(const std::string& url, const ObjectState& pinned, ByteRange range,
                                    const TakePiece& take) {
  Arrived arrived{.url = url, .pinned = pinned, .range = range, .give = take};
  AwsClient::Tries tries(client);
  for (int moves = 0; arrived.count < range.size;) {
    const std::uint64_t before = arrived.count;
    AwsRequest request = placed(places, url, request_of(arrived));
    request.sink = [&](const AwsAnswer& head, ByteView piece) {
      if (arrived.count == before && !arrived.fits(head)) throw Useless();
      arrived.take(piece);
    };
    try {
      const bool complete = tries.attempt(request).has_value();
      if (arrived.count - before >= kGoodProgress) tries.progress();
      if (complete && arrived.count < range.size) {
        tries.failed(request, fmt::format("ended early, after {} of {} bytes", arrived.count, range.size));
      }
    } catch (const Useless&) {
      if (arrived.replaced_by) tell_replaced(url, pinned, arrived.replaced_by);
      throw RemoteError(fmt::format("{}: the server does not send parts of it", shown_url(url)), "download it first");
    } catch (const AwsError& error) {
      if (error.facts().problem == AwsProblem::precondition) tell_replaced(url, pinned, {});
      if (++moves > kMaxMoves || !places.learn(url, error.facts())) throw named(url, error);
    }
  }
}

}  // namespace dtrain::net
