#include "vote.hpp"

#include <algorithm>

namespace dtrain::elastic {
namespace {

// A vote for a generation is (generation << kBoundaryBits) + boundary; generations begin at 1.
constexpr int kBoundaryBits = 2;
constexpr std::uint64_t kFirstGenerationVote = 1 << kBoundaryBits;

Boundary boundary_of(std::uint64_t vote) { return static_cast<Boundary>(vote % kFirstGenerationVote); }

bool is_stop(std::uint64_t vote) { return vote == kVoteStop; }
bool is_end(std::uint64_t vote) { return vote == kVoteStop || vote == kVoteCoordinatorLost; }

}  // namespace

std::uint64_t vote_for(const Commit& commit) {
  return (commit.generation << kBoundaryBits) + static_cast<std::uint64_t>(commit.boundary);
}

Judgement judge_votes(std::span<const std::uint64_t> votes, bool at_epoch_end) {
  if (votes.empty()) return {};
  if (std::ranges::any_of(votes, is_stop) || std::ranges::all_of(votes, is_end)) return {.verdict = Verdict::stop};
  const std::uint64_t first = votes.front();
  const bool same = std::ranges::all_of(votes, [first](std::uint64_t vote) { return vote == first; });
  if (!same || first < kFirstGenerationVote) return {};
  if (boundary_of(first) == Boundary::epoch && !at_epoch_end) return {};
  return {Verdict::change, first >> kBoundaryBits};
}

}  // namespace dtrain::elastic
