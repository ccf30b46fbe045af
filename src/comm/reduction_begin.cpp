#include "reduction_begin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>

namespace dtrain::comm {
namespace {

std::uint64_t hash_of(const ShardSpans& spans) {
  std::vector<int> numbers;
  for (const ShardSpan& span : spans) numbers.insert(numbers.end(), {span.first, span.last});
  return spans.empty() ? 0 : std::uint64_t{1} << 32 | crc32c(std::as_bytes(std::span(numbers)));
}

}  // namespace

ReductionBegin begin_of(const ReductionShape& shape, const Note& note) {
  ReductionBegin begin{.shards = shape.shards,
                       .size = shape.size,
                       .rounded = shape.rounded,
                       .packed = shape.packed,
                       .packing = static_cast<std::int64_t>(shape.packing),
                       .spans = hash_of(shape.spans)};
  std::ranges::copy(note.words, begin.note);
  return begin;
}

Note note_of(const ReductionBegin& begin) {
  Note note;
  std::ranges::copy(begin.note, note.words.begin());
  return note;
}

ReductionBegin begin_from(std::string_view bytes, const std::string& peer) {
  ReductionBegin begin;
  if (bytes.size() != sizeof begin) throw PeerLost(peer + " does something else than a reduction");
  std::memcpy(&begin, bytes.data(), sizeof begin);
  return begin;
}

void check_same_shape(const ReductionBegin& mine, const ReductionBegin& theirs, const std::string& peer) {
  const auto shape = [](const ReductionBegin& b) {
    return std::array{b.shards, b.size, b.rounded, b.packed, b.packing};
  };
  if (shape(theirs) == shape(mine)) {
    if (theirs.spans == mine.spans) return;
    throw PeerLost(peer + " divides the shards among the ranks in another way");
  }
  throw PeerLost(fmt::format(
      "{} reduces {} floats ({} rounded, {} packed) over {} shards, this rank {} ({} rounded, {} packed) over {}", peer,
      theirs.size, theirs.rounded, theirs.packed, theirs.shards, mine.size, mine.rounded, mine.packed, mine.shards));
}

}  // namespace dtrain::comm
