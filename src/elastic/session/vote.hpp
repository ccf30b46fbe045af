// What ranks vote in a step's notes, as one word, and what all their votes together mean.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <dtrain/elastic/membership.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

constexpr std::uint64_t kVoteGoOn = 0;
constexpr std::uint64_t kVoteStop = 1;      // one is enough: the others may never hear of it
constexpr std::uint64_t kVoteOrphaned = 2;  // the coordinator is gone for me: stop if it is for all

// A vote for switching to the committed generation.
std::uint64_t vote_for(const Commit& commit);

struct Judgement {
  Verdict verdict = Verdict::go_on;
  Generation next = 0;  // for change
};
// A function of its arguments alone, so that all ranks come to the same answer.
Judgement judge_votes(std::span<const std::uint64_t> votes, bool at_epoch_end);

}  // namespace dtrain::elastic
