#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "rank_placement.hpp"
#include "some_placement.hpp"

namespace dtrain::external {
namespace {

using Ranks = std::vector<int>;

TEST(ForeignCast, RanksOfOneAddressAreNeighbours) {
  const RankPlacement placement = some_placement({2, 1, 3});
  EXPECT_EQ(placement.neighbours(1), (Ranks{0, 1}));
  EXPECT_EQ(placement.neighbours(4), (Ranks{3, 4, 5}));
  EXPECT_EQ(placement.machines(), (Ranks{0, 2, 3}));
  EXPECT_EQ(placement.machine_of(5), 2);
}

TEST(ForeignCast, EachHostHasALine) { EXPECT_EQ(some_placement({2, 1, 3}).host_lines(), "host0\nhost1\nhost2\n"); }

TEST(ForeignCast, ServersAreDealtInTurn) {
  const RankPlacement placement = some_placement({1, 1}, 3);
  EXPECT_EQ(placement.servers_of(0), (Ranks{0, 2}));
  EXPECT_EQ(placement.servers_of(1), (Ranks{1}));
  EXPECT_EQ(placement.address_of_server(1), "10.0.0.2:2004");
  EXPECT_EQ(placement.address_of_server(2), "10.0.0.1:1005");
}

TEST(ForeignCast, ARankLeasesPortsForTheMostServersThatItMayGet) {
  EXPECT_EQ(ports_of_a_rank(2, 0), first_server_port);
  EXPECT_EQ(ports_of_a_rank(2, 3), first_server_port + 2);
}

TEST(ForeignCast, WhatAnyRankKnowsOfTheRunHolds) {
  RankPlacement placement = some_placement({3});
  std::vector<RankInfo> ranks = placement.ranks;
  ranks[0].starts = 2;
  ranks[1].failures = 1;
  ranks[2].steps = 40;
  ranks[1].progress = {100, 2};
  ranks[2].progress = {90, 5};
  placement = place_ranks(8, ranks, 0);
  EXPECT_EQ(placement.starts, 2);
  EXPECT_EQ(placement.failures, 1);
  EXPECT_EQ(placement.steps, 40);
  EXPECT_EQ(placement.progress, (RestartProgress{100, 2}));
}

TEST(ForeignCast, SeatsTravelWhole) {
  RankInfo info = some_placement({1}, 2).ranks.front();
  info.starts = 3;
  info.failures = 2;
  info.steps = 1;
  info.progress = {9, 4};
  const RankInfo got = rank_info_from_json(Json::parse(to_json(info).dump(), "test"));
  EXPECT_EQ(to_json(got), to_json(info));
}

TEST(ForeignCast, ASeatWithoutPortsIsRefused) {
  RankInfo info = some_placement({1}).ranks.front();
  info.ports.clear();
  EXPECT_THROW(rank_info_from_json(to_json(info)), DataError);
}

}  // namespace
}  // namespace dtrain::external
