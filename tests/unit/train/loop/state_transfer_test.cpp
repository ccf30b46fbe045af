#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include <dtrain/base/error.hpp>

#include "loop/state_transfer.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::train {
namespace {

// A rank whose chunks arrive damaged: the first `times` that it sends.
class Damaging final : public comm::Communicator {
 public:
  Damaging(std::unique_ptr<comm::Communicator> inner, int times) : inner_(std::move(inner)), times_(times) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  std::unique_ptr<comm::Reduction> begin_reduction(const comm::ReductionShape& shape, const comm::Note& note) override {
    return inner_->begin_reduction(shape, note);
  }
  std::unique_ptr<comm::DeviceReduction> begin_device_reduction(const comm::ReductionShape& shape,
                                                                const std::vector<FloatRange>& parts,
                                                                const comm::Note& note) override {
    return inner_->begin_device_reduction(shape, parts, note);
  }
  void recycle(comm::FloatBuffer sum) override { inner_->recycle(std::move(sum)); }
  std::vector<std::string> all_gather(ByteView mine) override { return inner_->all_gather(mine); }
  void send(int to, ByteView bytes) override {
    std::string copy(text_of(bytes));
    if (copy.size() > 64 && times_-- > 0) copy[copy.size() / 2] ^= 1;
    inner_->send(to, bytes_of(copy));
  }
  void receive(int from, std::span<std::byte> bytes) override { inner_->receive(from, bytes); }
  void abort() noexcept override { inner_->abort(); }

 private:
  std::unique_ptr<comm::Communicator> inner_;
  int times_;
};

// More than two chunks of parameters.
backend::ModelState large_state() {
  backend::ModelState state;
  state.parameters = random_floats((9 << 20) / 4, 1);
  state.statistics = random_floats(100, 2);
  state.optimizer = random_floats((9 << 20) / 4, 3);
  state.average = random_floats((5 << 20) / 4, 4);
  return state;
}

backend::ModelState room_for(const backend::ModelState& state) {
  backend::ModelState room;
  room.parameters.resize(state.parameters.size());
  room.statistics.resize(state.statistics.size());
  room.optimizer.resize(state.optimizer.size());
  room.average.resize(state.average.size());
  return room;
}

struct Ending {
  backend::ModelState state;
  std::string error;  // kind
};

// Ranks 0 and 1 hold the state, the others receive it; rank `flawed` damages some of what it sends.
std::vector<Ending> transfer(const backend::ModelState& state, int damaged, int receivers = 2, std::size_t flawed = 0) {
  Roles roles{.leader = 0, .holders = {0, 1}, .receivers = {}};
  for (int rank = 2; rank < 2 + receivers; ++rank) roles.receivers.push_back(rank);
  auto world = comm::make_local_world(2 + receivers);
  world[flawed] = std::make_unique<Damaging>(std::move(world[flawed]), damaged);
  std::vector<Ending> endings(world.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < endings.size(); ++rank) {
    threads.emplace_back([&, rank, comm = std::move(world[rank])] {
      try {
        endings[rank].state = room_for(state);
        if (rank < 2) send_chunks(*comm, roles, chunks_of(state), [] {});
        if (rank >= 2) receive_chunks(*comm, roles, room_in(endings[rank].state), [] {});
      } catch (const Error& error) {
        endings[rank].error = error.kind();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return endings;
}

TEST(StateTransfer, BringsEveryByteToAllReceiversFromSeveralHolders) {
  const backend::ModelState state = large_state();
  const std::vector<Ending> endings = transfer(state, 0);
  for (const std::size_t rank : {2, 3}) {
    EXPECT_EQ(endings[rank].state.parameters, state.parameters);
    EXPECT_EQ(endings[rank].state.statistics, state.statistics);
    EXPECT_EQ(endings[rank].state.optimizer, state.optimizer);
    EXPECT_EQ(endings[rank].state.average, state.average);
  }
}

TEST(StateTransfer, FetchesDamagedChunksAgainFromAnotherHolder) {
  const backend::ModelState state = large_state();
  const std::vector<Ending> endings = transfer(state, 3);
  for (const Ending& ending : endings) EXPECT_EQ(ending.error, "");
  EXPECT_EQ(endings[2].state.parameters, state.parameters);
  EXPECT_EQ(endings[3].state.optimizer, state.optimizer);
}

TEST(StateTransfer, ReceiversPassItOn) {
  const backend::ModelState state = large_state();
  const std::vector<Ending> endings = transfer(state, 0, 9);
  for (std::size_t rank = 2; rank < endings.size(); ++rank) {
    EXPECT_EQ(endings[rank].error, "");
    EXPECT_EQ(endings[rank].state.parameters, state.parameters) << rank;
    EXPECT_EQ(endings[rank].state.average, state.average) << rank;
  }
}

// Rank 2 is a receiver whose chunks others get: with the hash of the holder, they notice.
TEST(StateTransfer, WhatAReceiverDamagesIsFetchedFromAHolder) {
  const backend::ModelState state = large_state();
  const std::vector<Ending> endings = transfer(state, 5, 7, 2);
  for (std::size_t rank = 2; rank < endings.size(); ++rank) {
    EXPECT_EQ(endings[rank].error, "");
    EXPECT_EQ(endings[rank].state.parameters, state.parameters) << rank;
    EXPECT_EQ(endings[rank].state.optimizer, state.optimizer) << rank;
  }
}

TEST(StateTransfer, ReadsAStateOfNothing) { EXPECT_EQ(transfer({}, 0)[2].error, ""); }

TEST(StateTransfer, ThrowsOutAReceiverThatGetsNoGoodCopy) {
  const Roles roles{.leader = 0, .holders = {0}, .receivers = {1}};
  auto world = comm::make_local_world(2);
  const backend::ModelState state = large_state();
  backend::ModelState room = room_for(state);
  std::thread holder([&state, &roles, comm = Damaging(std::move(world[0]), 1000)]() mutable {
    EXPECT_THROW(send_chunks(comm, roles, chunks_of(state), [] {}), PeerLost);
  });
  try {
    receive_chunks(*world[1], roles, room_in(room), [] {});
    ADD_FAILURE() << "it took damaged bytes";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), "error");
    EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos);
  }
  holder.join();
}

}  // namespace
}  // namespace dtrain::train
