#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "cast.hpp"
#include "some_cast.hpp"

namespace dtrain::external {
namespace {

using Ranks = std::vector<int>;

TEST(ForeignCast, RanksOfOneAddressAreNeighbours) {
  const Cast cast = some_cast({2, 1, 3});
  EXPECT_EQ(cast.neighbours(1), (Ranks{0, 1}));
  EXPECT_EQ(cast.neighbours(4), (Ranks{3, 4, 5}));
  EXPECT_EQ(cast.machines(), (Ranks{0, 2, 3}));
  EXPECT_EQ(cast.machine_of(5), 2);
}

TEST(ForeignCast, ServersAreDealtInTurn) {
  const Cast cast = some_cast({1, 1}, 3);
  EXPECT_EQ(cast.servers_of(0), (Ranks{0, 2}));
  EXPECT_EQ(cast.servers_of(1), (Ranks{1}));
  EXPECT_EQ(cast.address_of_server(1), "10.0.0.2:2004");
  EXPECT_EQ(cast.address_of_server(2), "10.0.0.1:1005");
}

TEST(ForeignCast, ARankLeasesPortsForTheMostServersThatItMayGet) {
  EXPECT_EQ(ports_of_a_rank(2, 0), first_server_port);
  EXPECT_EQ(ports_of_a_rank(2, 3), first_server_port + 2);
}

TEST(ForeignCast, WhatAnyRankKnowsOfTheRunHolds) {
  Cast cast = some_cast({3});
  std::vector<Seat> seats = cast.seats;
  seats[0].starts = 2;
  seats[1].failures = 1;
  seats[2].steps = 40;
  seats[1].progress = {100, 2};
  seats[2].progress = {90, 5};
  cast = make_cast(8, seats, 0);
  EXPECT_EQ(cast.starts, 2);
  EXPECT_EQ(cast.failures, 1);
  EXPECT_EQ(cast.steps, 40);
  EXPECT_EQ(cast.progress, (Progress{100, 2}));
}

TEST(ForeignCast, SeatsTravelWhole) {
  Seat seat = some_cast({1}, 2).seats.front();
  seat.starts = 3;
  seat.failures = 2;
  seat.steps = 1;
  seat.progress = {9, 4};
  const Seat got = seat_from_json(Json::parse(to_json(seat).dump(), "test"));
  EXPECT_EQ(to_json(got), to_json(seat));
}

TEST(ForeignCast, ASeatWithoutPortsIsRefused) {
  Seat seat = some_cast({1}).seats.front();
  seat.ports.clear();
  EXPECT_THROW(seat_from_json(to_json(seat)), DataError);
}

}  // namespace
}  // namespace dtrain::external
