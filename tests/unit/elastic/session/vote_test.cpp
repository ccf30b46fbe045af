#include <gtest/gtest.h>

#include <vector>

#include "session/vote.hpp"

namespace dtrain::elastic {
namespace {

using Votes = std::vector<std::uint64_t>;
const std::uint64_t kStepTo7 = vote_for({7, Boundary::step}), kEpochTo7 = vote_for({7, Boundary::epoch});
const std::uint64_t kStepTo8 = vote_for({8, Boundary::step});

Verdict verdict(const Votes& votes, bool at_epoch_end = false) { return judge_votes(votes, at_epoch_end).verdict; }

TEST(Vote, AChangeNeedsAllRanks) {
  EXPECT_EQ(verdict({kStepTo7, kStepTo7}), Verdict::change);
  EXPECT_EQ(verdict({kStepTo7, kVoteGoOn}), Verdict::go_on);
  EXPECT_EQ(verdict({kStepTo7, kStepTo8}), Verdict::go_on);
  EXPECT_EQ(verdict({kStepTo7, kEpochTo7}, true), Verdict::go_on);
  EXPECT_EQ(judge_votes(Votes{kStepTo7, kStepTo7}, false).next, 7u);
}

TEST(Vote, AnEpochsChangeWaitsForItsEnd) {
  EXPECT_EQ(verdict({kEpochTo7, kEpochTo7}, false), Verdict::go_on);
  EXPECT_EQ(verdict({kEpochTo7, kEpochTo7}, true), Verdict::change);
}

TEST(Vote, OneRankIsEnoughToStop) {
  EXPECT_EQ(verdict({kStepTo7, kVoteStop}), Verdict::stop);
  EXPECT_EQ(verdict({kVoteGoOn, kVoteStop, kVoteCoordinatorLost}), Verdict::stop);
}

TEST(Vote, ALostCoordinatorStopsTheJobOnlyWhenItIsLostForAll) {
  EXPECT_EQ(verdict({kVoteCoordinatorLost, kVoteGoOn}), Verdict::go_on);
  EXPECT_EQ(verdict({kVoteCoordinatorLost, kVoteCoordinatorLost}), Verdict::stop);
}

TEST(Vote, WithoutAnyoneToVoteItGoesOn) { EXPECT_EQ(verdict({}), Verdict::go_on); }

}  // namespace
}  // namespace dtrain::elastic
