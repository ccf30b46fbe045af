// What the ranks send each other with every reduction, to notice when a rank is at another cursor or computes other
// bits.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/backend/backend.hpp>
#include <dtrain/comm/communicator.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "shard_balance.hpp"

namespace dtrain::train {

// Words 0: the vote, 1: the cursor, 2: the hash of a slice of the state, 3: times of the last step.
comm::Note note_of(std::uint64_t vote, const Cursor& cursor, std::uint64_t state_slice, const StepTimes& times = {});
std::vector<std::uint64_t> votes_of(const std::vector<comm::Note>& notes);
std::vector<StepTimes> times_of(const std::vector<comm::Note>& notes);

// A number for each cursor of a run.
std::uint64_t place_of(const Cursor& cursor);

// Hash of 256 KiB of the state, another part after each step of so many updates, so that all of it is looked at in
// turn; the number of updates and the loss scale are looked at each time. What a rank with a wrong bit contributes
// until that bit's turn comes is summed unseen.
std::uint64_t state_slice(const backend::Executable& executable, int updates_of_step = 1);

// Throws PeerLost when not all notes come from the same cursor, or when some rank's state is not that of the others;
// Error when it is this rank's state that differs: the largest group of equals is right, among equal groups that of the
// lowest rank.
void require_agreement(const std::vector<comm::Note>& notes, int rank);

}  // namespace dtrain::train
