#include "agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>

namespace dtrain::train {
namespace {

enum Word : std::size_t { kVote, kCursor, kState, kTimes };

constexpr std::int64_t kSliceFloats = 64 << 10;

void require_same_cursor(const std::vector<comm::Note>& notes) {
  const std::uint64_t first = notes.front().words[kCursor];
  const bool same = std::ranges::all_of(notes, [&](const comm::Note& note) { return note.words[kCursor] == first; });
  if (!same) throw PeerLost("the ranks are at different steps");
}

std::uint64_t most_common_state(const std::vector<comm::Note>& notes) {
  const auto votes_for = [&](const comm::Note& candidate) {
    return std::ranges::count_if(notes,
                                 [&](const auto& note) { return note.words[kState] == candidate.words[kState]; });
  };
  return std::ranges::max_element(notes, {}, votes_for)->words[kState];  // the first of equals
}

}  // namespace

comm::Note note_of(std::uint64_t vote, const Cursor& cursor, std::uint64_t state_slice, const StepTimes& times) {
  comm::Note note;
  note.words[kVote] = vote;
  note.words[kCursor] = place_of(cursor);
  note.words[kState] = state_slice;
  note.words[kTimes] = word_of(times);
  return note;
}

std::vector<std::uint64_t> votes_of(const std::vector<comm::Note>& notes) {
  std::vector<std::uint64_t> votes;
  for (const comm::Note& note : notes) votes.push_back(note.words[kVote]);
  return votes;
}

std::vector<StepTimes> times_of(const std::vector<comm::Note>& notes) {
  std::vector<StepTimes> times;
  for (const comm::Note& note : notes) times.push_back(times_of(note.words[kTimes]));
  return times;
}

std::uint64_t place_of(const Cursor& cursor) { return std::uint64_t{cursor.epoch} << 40 | cursor.position; }

// What every slice holds: it is small.
static std::uint64_t hash_of(const backend::StateNumbers& numbers) {
  const std::uint32_t words[] = {static_cast<std::uint32_t>(numbers.updates),
                                 static_cast<std::uint32_t>(numbers.updates >> 32),
                                 std::bit_cast<std::uint32_t>(numbers.loss_scale.value), numbers.loss_scale.good_steps};
  return crc32c(std::as_bytes(std::span(words)));
}

std::uint64_t state_slice(const backend::Executable& executable, int updates_of_step) {
  const backend::StateNumbers numbers = executable.state_numbers();
  const std::int64_t size = executable.state_size();
  if (size == 0) return hash_of(numbers);
  const auto slices = static_cast<std::uint64_t>((size + kSliceFloats - 1) / kSliceFloats);
  const std::uint64_t step = numbers.updates / static_cast<std::uint64_t>(updates_of_step);
  const std::int64_t first = static_cast<std::int64_t>(step % slices) * kSliceFloats;
  const std::vector<float> floats = executable.state_floats({first, std::min(kSliceFloats, size - first)});
  return std::uint64_t{crc32c(std::as_bytes(std::span(floats)))} << 32 | hash_of(numbers);
}

void require_agreement(const std::vector<comm::Note>& notes, int rank) {
  require_same_cursor(notes);
  const std::uint64_t right = most_common_state(notes);
  std::vector<int> others;
  for (std::size_t i = 0; i < notes.size(); ++i) {
    if (notes[i].words[kState] != right) others.push_back(static_cast<int>(i));
  }
  if (others.empty()) return;
  if (std::ranges::find(others, rank) != others.end()) {
    throw Error(fmt::format("rank {}: its weights are not those of the other ranks", rank),
                "memory or processor of this machine may be faulty, or it computes in another way than the others");
  }
  throw PeerLost(fmt::format("the weights of rank {} are not those of the others", fmt::join(others, ", ")));
}

}  // namespace dtrain::train
