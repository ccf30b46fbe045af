#include <gtest/gtest.h>

#include <csignal>

#include <dtrain/base/stop.hpp>
#include <dtrain/elastic/membership.hpp>

namespace dtrain::elastic {
namespace {

TEST(FixedMembership, EndsWithACheckpointWhereASignalCameBeforeTheLoss) {
  watch_stop_signals();
  reset_stop_signal();
  const auto membership = make_fixed_membership(comm::make_single());
  EXPECT_EQ(membership->enter({}).kind, Entry::Kind::train);
  EXPECT_THROW(membership->lost(PeerLost("a peer is gone")), PeerLost);
  std::raise(SIGTERM);
  EXPECT_NO_THROW(membership->lost(PeerLost("no data come")));
  EXPECT_EQ(membership->enter({}).kind, Entry::Kind::checkpoint);
  reset_stop_signal();
}

}  // namespace
}  // namespace dtrain::elastic
