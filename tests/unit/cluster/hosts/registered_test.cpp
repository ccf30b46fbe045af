#include <dtrain/cluster/registered.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <tuple>

#include <dtrain/base/error.hpp>

#include "common/set_variable.hpp"
#include "common/temporary_folder.hpp"

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

unsigned mode_of(const Path& path) { return static_cast<unsigned>(std::filesystem::status(path).permissions()); }

TEST(RegisteredCluster, ReadsWhatItWrites) { EXPECT_EQ(registered_cluster_from(to_json(lab()), "a test"), lab()); }

TEST(RegisteredCluster, IsItsOwnersToWriteWhateverTheUmask) {
  const TemporaryFolder home;
  const SetVariable variable("HOME", home.path().string());
  RegisteredCluster cluster = lab();
  cluster.folder = home / "shared";
  make_folder(cluster.folder);
  const mode_t before = ::umask(0);
  remember(cluster);
  become_head(cluster);
  write_cluster(cluster);
  ::umask(before);
  for (const char* folder : {".dtrain", ".dtrain/clusters", ".dtrain/clusters/lab"})
    EXPECT_EQ(mode_of(home / folder), 0755u) << folder;
  for (const char* file :
       {".dtrain/clusters/lab/registered.json", ".dtrain/clusters/lab/head.json", "shared/cluster.json"})
    EXPECT_EQ(mode_of(home / file), 0600u) << file;
  EXPECT_EQ(mode_of(cluster.host_file()), 0644u);
  EXPECT_EQ(registered("lab"), cluster);
}

TEST(RegisteredCluster, OneThatCannotBeLookedForIsNotTakenForOneThatIsNotThere) {
  const TemporaryFolder shared;
  EXPECT_FALSE(read_cluster(shared / "nowhere"));
  std::filesystem::create_symlink("loop", shared / "loop");
  EXPECT_THROW(std::ignore = read_cluster(shared / "loop"), Error);
}

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
