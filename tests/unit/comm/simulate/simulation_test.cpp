#include <dtrain/comm/simulation.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <dtrain/base/error.hpp>

#include "comm/frames.hpp"

namespace dtrain::comm {
namespace {

constexpr double kPacket = 1448, kOnWire = 1538;  // bytes of a full packet, without and with its headers
constexpr double kHeader = sizeof(FrameHeader);

// Bytes that fill whole packets and whole segments nearly, so that a case can be worked out by hand.
double seconds_of(double bytes, double bytes_per_second) { return bytes * kOnWire / kPacket / bytes_per_second; }

ExchangeModel two_ranks(std::int64_t floats, LinkModel link) {
  return {.ranks = 2, .shards = 2, .floats = floats, .link = link};
}

TEST(SimulatedLinks, MoveBytesAtTheirBandwidthAndAfterTheirLatency) {
  const LinkModel link{.bytes_per_second = 1e6, .latency = 0.25};
  const auto ends = simulate_transfers(link, 2, {{0, 1, 1'000'000}});
  EXPECT_NEAR(ends[0], 0.25 + seconds_of(1e6, 1e6), 2e-3);
}

TEST(SimulatedLinks, GiveTwoConnectionsFromOneHostHalfEach) {
  const LinkModel link{.bytes_per_second = 1e6};
  const auto ends = simulate_transfers(link, 3, {{0, 1, 10'000'000}, {0, 2, 5'000'000}});
  EXPECT_NEAR(ends[1], seconds_of(10e6, 1e6), 0.15);  // beside as many bytes of the other
  EXPECT_NEAR(ends[0], seconds_of(15e6, 1e6), 0.02);  // the link was never idle
}

TEST(SimulatedLinks, GiveTwoConnectionsToOneHostHalfEach) {
  const LinkModel link{.bytes_per_second = 1e6};
  const auto ends = simulate_transfers(link, 3, {{0, 2, 10'000'000}, {1, 2, 5'000'000}});
  EXPECT_NEAR(ends[1], seconds_of(10e6, 1e6), 0.15);
  EXPECT_NEAR(ends[0], seconds_of(15e6, 1e6), 0.02);
}

// The first two connections of a link happen to have other weights than half.
TEST(SimulatedLinks, GiveUnequalPartsWhereTheyAreUneven) {
  const LinkModel link{.bytes_per_second = 1e6, .unevenness = 0.9};
  const auto ends = simulate_transfers(link, 3, {{0, 1, 10'000'000}, {0, 2, 10'000'000}});
  EXPECT_GT(std::abs(ends[0] - ends[1]), 2);
  EXPECT_NEAR(std::max(ends[0], ends[1]), seconds_of(20e6, 1e6), 0.02);  // the link was never idle
}

TEST(SimulatedLinks, CarryBothDirectionsAtOnce) {
  const LinkModel link{.bytes_per_second = 1e6};
  const auto ends = simulate_transfers(link, 2, {{0, 1, 1'000'000}, {1, 0, 1'000'000}});
  EXPECT_NEAR(ends[0], seconds_of(1e6, 1e6), 2e-3);
  EXPECT_NEAR(ends[1], seconds_of(1e6, 1e6), 2e-3);
}

// Both ranks send half of their array, and then half of the sum: as a ring of two.
TEST(SimulatedReduction, OfTwoRanksTakesTheTimeOfTheirBytes) {
  const SimulatedStep step = simulate_reduction(two_ranks(10'000'000, {.bytes_per_second = 1e8}));
  EXPECT_EQ(step.ring_bytes, 40e6);
  EXPECT_DOUBLE_EQ(step.ring_seconds, 0.4);
  EXPECT_NEAR(step.seconds, seconds_of(40e6, 1e8), 0.01);
  EXPECT_NEAR(step.byte_ratio(), 1, 0.001);
  EXPECT_EQ(step.rounds, 2);
  EXPECT_EQ(step.limit, SimulatedStep::Limit::sending);
  EXPECT_GT(step.limit_share, 0.97);
}

TEST(SimulatedReduction, OfFewBytesTakesItsTwoLatencies) {
  const SimulatedStep step = simulate_reduction(two_ranks(64, {.bytes_per_second = 1e9, .latency = 0.1}));
  EXPECT_NEAR(step.seconds, 0.2, 1e-5);
  EXPECT_EQ(step.limit, SimulatedStep::Limit::latency);
  EXPECT_EQ(step.frames, 6);  // from each rank: begin, its piece and its sum
}

// One bucket; each rank moves three frames out and three in, and adds its half.
TEST(SimulatedReduction, OfSlowHostsTakesTheTimeOfTheirThreads) {
  ExchangeModel model = two_ranks(64, {.bytes_per_second = 1e12});
  model.host = {.frame = 1, .add_byte = 0.5 / 128};
  const SimulatedStep step = simulate_reduction(model);
  EXPECT_NEAR(step.seconds, 6.5, 1e-6);
  EXPECT_EQ(step.limit, SimulatedStep::Limit::thread);
  model.host = {.byte = 1};
  EXPECT_NEAR(simulate_reduction(model).seconds, 2 * (kHeader + sizeof(ReductionBegin)) + 4 * (kHeader + 128), 1e-6);
}

TEST(SimulatedReduction, RoundedToBfloat16TakesHalf) {
  ExchangeModel model = two_ranks(10'000'000, {.bytes_per_second = 1e8});
  model.rounded = true;
  EXPECT_NEAR(simulate_reduction(model).seconds, seconds_of(20e6, 1e8), 0.01);
}

// Each rank sends half of its leaf, in 2 bits a float, and half of the sum, in 3.
TEST(SimulatedReduction, OfCountsTakesTheirBits) {
  ExchangeModel model = two_ranks(10'000'000, {.bytes_per_second = 1e8});
  model.packing = Packing::counts;
  EXPECT_NEAR(simulate_reduction(model).busiest_link_bytes, 5e6 * (2 + 3) / 8, 0.01e6);
}

// Nearly every mask has one of 100 floats, and the sum has two; a mask takes a bit of each float.
TEST(SimulatedReduction, OfSparseFloatsTakesMasksAndFloats) {
  ExchangeModel model = two_ranks(10'000'000, {.bytes_per_second = 1e8});
  model.packing = Packing::sparse;
  model.density = 0.1;
  const double leaf = 1.0 / 512 + 1.0 / 8 + 0.1 * 4, sum = 1.0 / 512 + 1.0 / 8 + 0.19 * 4;
  EXPECT_NEAR(simulate_reduction(model).busiest_link_bytes, 5e6 * (leaf + sum), 0.02e6);
  model.density = 0.001;
  EXPECT_LT(simulate_reduction(model).busiest_link_bytes, 0.3e6);
}

// A rank with two subtrees sends both: three chunks where a ring has two.
TEST(SimulatedReduction, ShowsTheLinkThatCarriesMoreThanARing) {
  ExchangeModel model{.ranks = 3, .shards = 8, .floats = 3'000'000, .link = {.bytes_per_second = 1e8}};
  const SimulatedStep step = simulate_reduction(model);
  EXPECT_NEAR(step.byte_ratio(), 1.5, 0.01);
}

// In each round a rank has one partner, so it does not matter how a link shares its bandwidth out.
TEST(SimulatedReduction, HardlyDependsOnHowEvenConnectionsAre) {
  ExchangeModel model{.ranks = 16, .shards = 16, .floats = 8'000'000, .link = {.bytes_per_second = 1e8}};
  const double even = simulate_reduction(model).ring_ratio();
  EXPECT_LT(even, 1.12);  // 1.06 is the price of headers
  model.link.unevenness = 0.5;
  EXPECT_LT(simulate_reduction(model).ring_ratio(), even + 0.1);
}

// Of each chunk the host that owns it sends the sum, and the other one what its two ranks have added up.
TEST(SimulatedReduction, OfRanksThatShareAHostSendsAChunkOncePerHost) {
  ExchangeModel model{
      .ranks = 4, .shards = 4, .floats = 4'000'000, .ranks_per_host = 2, .link = {.bytes_per_second = 1e8}};
  const SimulatedStep step = simulate_reduction(model);
  EXPECT_NEAR(step.busiest_link_bytes, 16e6, 0.1e6);
  EXPECT_EQ(step.rounds, 4);
  model.ranks_per_host = 4;
  EXPECT_EQ(simulate_reduction(model).busiest_link_bytes, 0);
}

// 50 ranks have one or two of 64 shards: the shards of each are one node.
TEST(SimulatedReduction, OfRanksThatAreNoPowerOfTwoTakesTheBytesOfARing) {
  const ExchangeModel model{.ranks = 50, .shards = 64, .floats = 4'000'000, .link = {.bytes_per_second = 1e8}};
  EXPECT_NEAR(simulate_reduction(model).byte_ratio(), 1, 0.02);
}

TEST(SimulatedReduction, GivesTheSameTwice) {
  const ExchangeModel model{.ranks = 5,
                            .shards = 16,
                            .floats = 2'000'000,
                            .link = {.bytes_per_second = 1e8, .latency = 1e-4},
                            .host = {1e-6, 1e-10, 1e-10}};
  EXPECT_EQ(simulate_reduction(model).seconds, simulate_reduction(model).seconds);
}

TEST(SimulatedReduction, RefusesCasesThatCannotBe) {
  const ExchangeModel good = two_ranks(64, {.bytes_per_second = 1e6});
  const auto refuses = [&](auto change) {
    ExchangeModel model = good;
    change(model);
    EXPECT_THROW(simulate_reduction(model), UsageError);
  };
  refuses([](ExchangeModel& model) { model.ranks = 1; });
  refuses([](ExchangeModel& model) { model.ranks = 3; });
  refuses([](ExchangeModel& model) { model.shards = 6; });
  refuses([](ExchangeModel& model) { model.floats = 0; });
  refuses([](ExchangeModel& model) { model.density = 0; });
  refuses([](ExchangeModel& model) {
    model.rounded = true;
    model.packing = Packing::counts;
  });
  refuses([](ExchangeModel& model) { model.ranks_per_host = 0; });
  refuses([](ExchangeModel& model) { model.link.bytes_per_second = 0; });
  refuses([](ExchangeModel& model) { model.link.latency = -1; });
  refuses([](ExchangeModel& model) { model.link.unevenness = 1; });
}

}  // namespace
}  // namespace dtrain::comm
