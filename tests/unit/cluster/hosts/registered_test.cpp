#include <dtrain/cluster/registered.hpp>

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::cluster {
namespace {

RegisteredCluster lab() {
  return {
      .name = "lab",
      .shared = "/nfs",
      .folder = "/nfs/dtrain-jobs/lab",
      .hosts = {{.name = "h1", .host = "h1", .hourly = 2.0, .since = UnixTime(1'000)},
                {.name = "me@h2:2222", .user = "me", .host = "h2", .port = 2222, .slots = 2, .since = UnixTime(1'000)}},
      .budget = 10};
}

TEST(RegisteredCluster, ReadsWhatItWrites) { EXPECT_EQ(registered_cluster_from(to_json(lab()), "a test"), lab()); }

TEST(RegisteredCluster, WritesLinesOfAHostFile) {
  EXPECT_EQ(lab().hosts[0].line(), "h1");
  EXPECT_EQ(lab().hosts[1].line(), "me@h2:2222 slots=2");
}

TEST(RegisteredCluster, RefusesTheSchemaOfANewerProgram) {
  Json json = to_json(lab());
  json["schema"] = "dtrain.registered-cluster/2";
  EXPECT_THROW(registered_cluster_from(json, "a test"), DataError);
}

TEST(RegisteredCluster, CountsHoursFromTheRegistrationOfEachHost) {
  RegisteredCluster cluster = lab();
  cluster.hosts[1].hourly = 4;
  cluster.hosts[1].since = UnixTime(2'800);
  EXPECT_DOUBLE_EQ(spending_of(cluster, UnixTime(4'600)).dollars, 2 + 2);
  cluster.spent_by_others = 1.5;
  EXPECT_DOUBLE_EQ(spending_of(cluster, UnixTime(4'600)).dollars, 5.5);
  EXPECT_DOUBLE_EQ(spending_of(cluster, UnixTime(0)).dollars, 1.5) << "a clock that was put back";
}

TEST(RegisteredCluster, NamesTheHostsWhosePriceIsUnknown) {
  EXPECT_EQ(hourly_cost(lab()).unpriced, std::vector<std::string>{"me@h2:2222"});
  EXPECT_EQ(cost_text(hourly_cost(lab())), "$2.00 and the unknown price of me@h2:2222");
  EXPECT_EQ(spending_of(lab(), UnixTime(4'600)).unpriced, std::vector<std::string>{"me@h2:2222"});
  RegisteredCluster unknown = lab();
  unknown.hosts.erase(unknown.hosts.begin());
  EXPECT_EQ(cost_text(hourly_cost(unknown)), "an unknown price (me@h2:2222)");
}

}  // namespace
}  // namespace dtrain::cluster
