#include "agreement.hpp"

#include <gtest/gtest.h>

#include <set>

#include <dtrain/base/error.hpp>

#include "small_checkpoint.hpp"

namespace dtrain::train {
namespace {

const Cursor kHere{.epoch = 2, .step = 3, .samples_seen = 500, .position = 30};

std::vector<comm::Note> notes_with_states(const std::vector<std::uint64_t>& states) {
  std::vector<comm::Note> notes;
  for (const std::uint64_t state : states) notes.push_back(note_of(7, kHere, state));
  return notes;
}

std::string outcome(const std::vector<std::uint64_t>& states, int rank) {
  try {
    require_agreement(notes_with_states(states), rank);
    return "agreed";
  } catch (const Error& error) {
    return std::string(error.kind());
  }
}

TEST(Agreement, ThrowsOutTheRankWhoseStateIsNotThatOfTheMost) {
  EXPECT_EQ(outcome({5, 5, 5}, 1), "agreed");
  EXPECT_EQ(outcome({5, 6, 5}, 1), "error");
  EXPECT_EQ(outcome({5, 6, 5}, 0), "peer-lost");
  EXPECT_EQ(outcome({6, 5, 5, 5}, 0), "error");
  EXPECT_EQ(outcome({6, 5}, 0), "peer-lost");
  EXPECT_EQ(outcome({6, 5}, 1), "error");
}

TEST(Agreement, IsLostForAllWhenOneIsAtAnotherStep) {
  std::vector<comm::Note> notes = notes_with_states({5, 5});
  Cursor next = kHere;
  next.position += 10;
  notes[1] = note_of(7, next, 5);
  for (const int rank : {0, 1}) EXPECT_THROW(require_agreement(notes, rank), PeerLost);
}

TEST(Agreement, CarriesEverybodysVote) {
  std::vector<comm::Note> notes = notes_with_states({5, 5});
  notes[1] = note_of(9, kHere, 5);
  EXPECT_EQ(votes_of(notes), (std::vector<std::uint64_t>{7, 9}));
}

// One flipped bit anywhere is seen once every slice had its turn.
TEST(StateSlice, LooksAtEveryPartOfTheStateInTurn) {
  constexpr std::size_t kFloats = 150'000;  // 3 slices each of parameters and optimizer, 1 of statistics
  backend::ModelState good;
  good.parameters = random_floats(kFloats, 1);
  good.statistics = random_floats(10, 2);
  good.optimizer = random_floats(kFloats, 3);
  backend::ModelState bad[3] = {good, good, good};
  bad[0].parameters[kFloats - 1] += 1;
  bad[1].statistics[0] += 1;
  bad[2].optimizer[70'000] += 1;
  for (backend::ModelState& other : bad) {
    int seen = 0;
    for (std::uint64_t updates = 100; updates < 107; ++updates) {
      good.updates = other.updates = updates;
      seen += state_slice(good) != state_slice(other);
    }
    EXPECT_EQ(seen, 1);
  }
}

TEST(Cursor, HasAPlaceOfItsOwn) {
  std::set<std::uint64_t> places;
  for (const std::uint32_t epoch : {0u, 1u, 2u}) {
    for (const std::uint64_t position : {0, 1, 50'000'000}) {
      places.insert(place_of({.epoch = epoch, .step = 0, .samples_seen = 0, .position = position}));
    }
  }
  EXPECT_EQ(places.size(), 9u);
}

}  // namespace
}  // namespace dtrain::train
