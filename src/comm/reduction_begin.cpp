#include "reduction_begin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <dtrain/base/error.hpp>

namespace dtrain::comm {

ReductionBegin begin_of(const ReductionShape& shape, const Note& note) {
  ReductionBegin begin{.shards = shape.shards, .size = shape.size, .rounded = shape.rounded};
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
  if (theirs.shards == mine.shards && theirs.size == mine.size && theirs.rounded == mine.rounded) return;
  throw PeerLost(fmt::format("{} reduces {} floats ({} rounded) over {} shards, this rank {} ({}) over {}", peer,
                             theirs.size, theirs.rounded, theirs.shards, mine.size, mine.rounded, mine.shards));
}

}  // namespace dtrain::comm
