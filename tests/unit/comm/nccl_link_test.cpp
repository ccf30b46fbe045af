// What one communicator of NCCL does when others do not answer: its stand-in only falls silent.
#include "nccl/link.hpp"

#include <gtest/gtest.h>

#include <optional>

#include <dtrain/base/error.hpp>

#include "host_accelerator.hpp"
#include "world.hpp"

namespace dtrain::comm::nccl {
namespace {

using namespace std::chrono_literals;

Clock::time_point in(std::chrono::milliseconds time) { return Clock::now() + time; }

// Two ranks that have met in NCCL, as threads.
struct Pair {
  Pair() {
    const auto thrown = run_ranks(mesh, [this](Communicator& comm) {
      const auto rank = static_cast<std::size_t>(comm.rank());
      links[rank].emplace(api, comm, devices[rank], aborted, 60s);
    });
    EXPECT_EQ(thrown, std::vector<std::string>(2));
  }
  Link& rank(std::size_t number) { return *links[number]; }

  const Api api = load(DTRAIN_NCCL_STANDIN);
  std::vector<std::unique_ptr<Communicator>> mesh = make_local_world(2);
  HostAccelerator devices[2];
  std::atomic<bool> aborted{false};
  std::optional<Link> links[2];
};

std::string lost(const std::function<void()>& work) {
  try {
    work();
  } catch (const PeerLost& error) {
    return error.what();
  }
  return "";
}

TEST(NcclLink, MovesWhatBothSidesAskForInOrder) {
  Pair pair;
  float sent[3] = {1, 2, 3}, got[3] = {};
  pair.rank(0).group(
      [&] {
        pair.rank(0).send(sent, 2, DataType::float32, 1);
        pair.rank(0).send(sent + 2, 1, DataType::float32, 1);
      },
      in(60s));
  pair.rank(1).group(
      [&] {
        pair.rank(1).receive(got, 2, DataType::float32, 0);
        pair.rank(1).receive(got + 2, 1, DataType::float32, 0);
      },
      in(60s));
  pair.rank(0).wait_for_device(in(60s));
  pair.rank(1).wait_for_device(in(60s));
  EXPECT_EQ(std::vector<float>(got, got + 3), (std::vector<float>{1, 2, 3}));
}

TEST(NcclLink, TurnsASilentRankIntoPeerLostAtTheDeadline) {
  Pair pair;
  float got = 0;
  pair.rank(0).group([&] { pair.rank(0).receive(&got, 1, DataType::float32, 1); }, in(60s));
  EXPECT_EQ(lost([&] { pair.rank(0).wait_for_device(in(100ms)); }),
            "NCCL did not end a transfer in time: a rank is gone, or does not answer");
}

TEST(NcclLink, StopsWaitingWhenItIsAborted) {
  Pair pair;
  float got = 0;
  pair.rank(0).group([&] { pair.rank(0).receive(&got, 1, DataType::float32, 1); }, in(60s));
  pair.aborted = true;
  EXPECT_EQ(lost([&] { pair.rank(0).wait_for_device(in(3600s)); }), "the communicator was aborted");
}

TEST(NcclLink, GivesUpWhereARankDoesNotCome) {
  const Api api = load(DTRAIN_NCCL_STANDIN);
  const auto mesh = make_local_world(2);
  HostAccelerator device;
  const std::atomic<bool> aborted{false};
  const auto thrown = run_ranks(mesh, [&](Communicator& comm) {
    if (comm.rank() == 0) Link(api, comm, device, aborted, 100ms);
    if (comm.rank() == 1) comm.all_gather({});  // the name of the communicator, which it does not use
  });
  EXPECT_NE(thrown[0].find("did not meet in NCCL within 0.1 s"), std::string::npos) << thrown[0];
  EXPECT_NE(thrown[0].find("setting 'comm-timeout'"), std::string::npos) << thrown[0];
}

// What the user can do about a computation that is slow is another thing than what helps against a lost rank.
TEST(NcclLink, SaysThatTheOwnComputationTookTooLong) {
  Pair pair;
  std::atomic<bool> computed{false};
  EXPECT_EQ(lost([&] { pair.rank(0).wait_for_computation({&computed}, 100ms); }),
            "this rank's GPU did not end its own computation within 0.1 s, which is setting 'comm-timeout' for each "
            "shard: it needs more time, or a transfer to a rank that is gone holds it up");
}

// At first it spins; later a look comes late by a small part of the wait, and never by more than a millisecond.
TEST(NcclLink, PausesForASmallPartOfTheWait) {
  EXPECT_EQ(pause_after(0us), 0us);
  EXPECT_EQ(pause_after(999us), 0us);
  for (const auto waited : {1000us, 3000us, 4000us, 20'000us, 60'000us}) {
    EXPECT_GT(pause_after(waited), 0us);
    EXPECT_LE(pause_after(waited) * 50, waited);
  }
  EXPECT_EQ(pause_after(1h), 1ms);
}

TEST(NcclLink, NamesWhatNcclRefuses) {
  Pair pair;
  float value = 0;
  EXPECT_THROW(pair.rank(0).send(&value, 1, DataType::float32, 7), Error);
}

}  // namespace
}  // namespace dtrain::comm::nccl
