#include "cli/commands/cluster/hosts/host_words.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::cli {
namespace {

TEST(HostWords, ReadsPricesOfAllHostsAndOfOne) {
  const HostPrices prices = prices_from("0.35,h1=2.10");
  EXPECT_EQ(prices.of_all, 0.35);
  EXPECT_EQ(prices.of_one.at("h1"), 2.10);
}

TEST(HostWords, RefusesWhatIsNoPrice) {
  for (const char* text : {"", "cheap", "-1", "h1=", "nan", "inf", "0.35 h1"}) {
    EXPECT_THROW(prices_from(text), UsageError) << text;
  }
}

TEST(HostWords, GivesEachHostItsPrice) {
  std::vector<cluster::RegisteredHost> hosts = hosts_in_words("h1 h2 slots=2");
  ASSERT_EQ(hosts.size(), 2u);
  EXPECT_EQ(hosts[1].slots, 2);
  give_prices(prices_from("h2=3"), hosts);
  EXPECT_FALSE(hosts[0].hourly);
  EXPECT_EQ(hosts[1].hourly, 3);
  EXPECT_THROW(give_prices(prices_from("h3=3"), hosts), UsageError);
}

TEST(HostWords, RefusesWordsThatAreNoHosts) {
  for (const char* words : {"", "slots=2", "h1 slots=none", "a@b@c"})
    EXPECT_THROW(hosts_in_words(words), UsageError) << words;
}

}  // namespace
}  // namespace dtrain::cli
