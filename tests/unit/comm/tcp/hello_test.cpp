// What a calling rank says of itself.
#include <gtest/gtest.h>

#include <dtrain/comm/mesh.hpp>

#include "tcp/reception.hpp"

namespace dtrain::comm {
namespace {

TEST(Hello, OpensNothingForAStrangerWhoSaysThatItIsARank) {
  const std::string hello = tcp::hello_of({.generation = 7, .rank = 1, .ranks = 3, .called = 2}).substr(1);
  EXPECT_EQ(tcp::caller_of(hello)->called, 2);
  EXPECT_FALSE(tcp::caller_of(hello + " 1"));
  EXPECT_TRUE(tcp::caller_of("7 1 3 2 encrypted 3 4"));
  EXPECT_FALSE(tcp::caller_of("7 2 3 2 encrypted 0 1"));
  EXPECT_FALSE(tcp::caller_of("7 1 3 3 encrypted 0 1"));
  EXPECT_FALSE(tcp::caller_of("7 -1 3 2 encrypted 0 1"));
  EXPECT_FALSE(tcp::caller_of("7 1 3 2 hidden 0 1"));
  EXPECT_FALSE(tcp::caller_of("7 1 3 2 encrypted 4 4"));
  EXPECT_FALSE(tcp::caller_of("7 1 3 2 encrypted -1 4"));
  EXPECT_FALSE(tcp::caller_of("7 1 3 2 encrypted 0 17"));
  EXPECT_FALSE(tcp::caller_of("7 1 3 2 encrypted 0"));
  EXPECT_FALSE(tcp::caller_of("7 1 3 2"));
  EXPECT_FALSE(tcp::caller_of(""));
}

TEST(Connections, AreFewerBetweenManyRanks) {
  EXPECT_EQ(connections_to_rank(4, 1), 4);
  EXPECT_EQ(connections_to_rank(4, 33), 4);
  EXPECT_EQ(connections_to_rank(4, 34), 3);
  EXPECT_EQ(connections_to_rank(4, 65), 2);
  EXPECT_EQ(connections_to_rank(4, 66), 1);
  EXPECT_EQ(connections_to_rank(1, 2), 1);
  EXPECT_EQ(connections_to_rank(16, 2048), 1);
}

}  // namespace
}  // namespace dtrain::comm
