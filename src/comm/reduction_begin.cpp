#include "reduction_begin.hpp"

#include <fmt/format.h>

#include <algorithm>
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
  ReductionBegin begin{
      .shards = shape.shards, .size = shape.size, .rounded = shape.rounded, .spans = hash_of(shape.spans)};
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
  if (theirs.shards == mine.shards && theirs.size == mine.size && theirs.rounded == mine.rounded) {
    if (theirs.spans == mine.spans) return;
    throw PeerLost(peer + " divides the shards among the ranks in another way");
  }
  throw PeerLost(fmt::format("{} reduces {} floats ({} rounded) over {} shards, this rank {} ({}) over {}", peer,
                             theirs.size, theirs.rounded, theirs.shards, mine.size, mine.rounded, mine.shards));
}

}  // namespace dtrain::comm
