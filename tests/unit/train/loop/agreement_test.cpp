#include <gtest/gtest.h>

#include <set>

#include <dtrain/base/error.hpp>

#include "loop/agreement.hpp"
#include "train/small_checkpoint.hpp"

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
  nn::GraphBuilder b("wide", {3, 8, 8});
  const int norm = b.add("norm", nn::BatchNorm{}, {b.add("hidden", nn::Dense{.out = 700}, {b.input()})});
  const nn::Graph graph = b.finish(b.add("logits", nn::Dense{.out = 4}, {norm}));
  backend::ModelState good;  // 5 slices, the last one not whole
  good.parameters = random_floats(static_cast<std::size_t>(graph.parameter_count), 1);
  good.statistics = random_floats(static_cast<std::size_t>(graph.statistic_count), 2);
  good.optimizer = random_floats(good.parameters.size(), 3);
  backend::ModelState bad[4] = {good, good, good, good};
  bad[0].parameters.back() += 1;
  bad[1].statistics[0] += 1;
  bad[2].optimizer[70'000] += 1;
  bad[3].optimizer.back() += 1;
  const auto executable = backend::make_reference_backend()->compile(graph, {.max_samples = 1});
  const auto slice_of = [&](backend::ModelState state, std::uint64_t updates) {
    state.updates = updates;
    executable->write_state(std::move(state));
    return state_slice(*executable);
  };
  for (const backend::ModelState& other : bad) {
    int seen = 0;
    for (std::uint64_t updates = 100; updates < 105; ++updates) {
      seen += slice_of(good, updates) != slice_of(other, updates);
    }
    EXPECT_EQ(seen, 1);
  }
}

TEST(StateSlice, LooksAtUpdatesAndLossScaleEachTime) {
  nn::GraphBuilder b("small", {1, 1, 2});
  const nn::Graph graph = b.finish(b.add("logits", nn::Dense{.out = 2}, {b.input()}));
  const auto executable = backend::make_reference_backend()->compile(graph, {.max_samples = 1});
  const auto slice_of = [&](std::uint64_t updates, const backend::LossScale& scale) {
    backend::ModelState state = executable->read_state();
    state.updates = updates;
    state.loss_scale = scale;
    executable->write_state(std::move(state));
    return state_slice(*executable);
  };
  const std::uint64_t good = slice_of(7, {1024, 0});
  EXPECT_EQ(slice_of(7, {1024, 0}), good);
  EXPECT_NE(slice_of(8, {1024, 0}), good);
  EXPECT_NE(slice_of(7, {512, 0}), good);
  EXPECT_NE(slice_of(7, {1024, 1}), good);
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
