#include <gtest/gtest.h>

#include <array>

#include <dtrain/net/connection_quota.hpp>

namespace dtrain::net {
namespace {

using namespace std::chrono_literals;

class ConnectionQuotaTest : public ::testing::Test {
 protected:
  using Id = ConnectionQuota::Id;
  Id id(std::size_t number) const { return &ids_.at(number); }
  Id displaced_by(std::size_t number, const std::string& address) {
    const auto decision = quota.add(id(number), address, now);
    EXPECT_TRUE(decision.admitted);
    return decision.displaced;
  }

  ConnectionQuota::Time now{};
  ConnectionQuota quota{{.most = 4, .most_of_address = 3, .grace = 1s}};

 private:
  std::array<char, 16> ids_{};
};

TEST_F(ConnectionQuotaTest, ACrowdFromOneAddressDisplacesItself) {
  EXPECT_EQ(displaced_by(0, "member"), nullptr);
  for (std::size_t i = 1; i <= 3; ++i) EXPECT_EQ(displaced_by(i, "stranger"), nullptr);
  EXPECT_EQ(displaced_by(4, "stranger"), id(1));
  EXPECT_EQ(displaced_by(5, "stranger"), id(2));
  EXPECT_EQ(displaced_by(6, "another member"), id(3)) << "of the address that has the most";
}

TEST_F(ConnectionQuotaTest, SilentConnectionsGoBeforeOthers) {
  quota.add(id(0), "here", now);
  quota.spoke(id(0), now);
  quota.add(id(1), "here", now);
  quota.add(id(2), "here", now);
  EXPECT_EQ(displaced_by(3, "here"), id(1));
  EXPECT_EQ(quota.size(), 3u);
}

TEST_F(ConnectionQuotaTest, ThoseWhoSpokeKeepTheirPlaceForAWhile) {
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(quota.add(id(i), std::to_string(i), now).admitted);
    EXPECT_FALSE(quota.is_full(now));
    quota.spoke(id(i), now);
  }
  EXPECT_TRUE(quota.is_full(now));
  now += 1s;
  EXPECT_FALSE(quota.is_full(now));
  EXPECT_EQ(displaced_by(4, "4"), id(0));
}

TEST_F(ConnectionQuotaTest, AnAddressThatHasTooManyGetsNoMore) {
  for (std::size_t i = 0; i < 3; ++i) {
    quota.add(id(i), "here", now);
    quota.spoke(id(i), now);
  }
  EXPECT_FALSE(quota.add(id(3), "here", now).admitted);
  EXPECT_TRUE(quota.add(id(4), "there", now).admitted);
  quota.remove(id(0));
  quota.remove(id(0));
  EXPECT_TRUE(quota.add(id(5), "here", now).admitted);
}

}  // namespace
}  // namespace dtrain::net
