// The votes that ranks put into the notes of steps, one word each, and their combined meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <dtrain/elastic/membership.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {

constexpr std::uint64_t kVoteGoOn = 0;
constexpr std::uint64_t kVoteStop = 1;             // one vote is enough: the other ranks may not know of the stop
constexpr std::uint64_t kVoteCoordinatorLost = 2;  // this rank has lost the coordinator: stop if all have

// A vote to switch to the committed generation.
std::uint64_t vote_for(const Commit& commit);

struct [[nodiscard]] Judgement {
  Verdict verdict = Verdict::go_on;
  Generation next = 0;  // for Verdict::change
};
// Depends on its arguments alone, so all ranks get the same result.
Judgement judge_votes(std::span<const std::uint64_t> votes, bool at_epoch_end);

}  // namespace dtrain::elastic
