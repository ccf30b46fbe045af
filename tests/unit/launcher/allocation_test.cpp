#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/launcher/allocation.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::launcher {
namespace {

using Hosts = std::vector<GrantedHost>;

Variables variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) -> std::optional<std::string> {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(PeHostfile, AddsTheQueuesOfAHostUp) {
  EXPECT_EQ(hosts_of_pe_hostfile("h2 1 all.q@h2 UNDEFINED\nh1\t3 all.q@h1 UNDEFINED\nh2 2 b.q@h2 <NULL>\n\n"),
            (Hosts{{"h2", 3}, {"h1", 3}}));
}

TEST(PeHostfile, RefusesWhatIsNoSlots) {
  EXPECT_THROW(hosts_of_pe_hostfile("h1\n"), DataError);
  EXPECT_THROW(hosts_of_pe_hostfile("h1 many all.q@h1\n"), DataError);
  EXPECT_THROW(hosts_of_pe_hostfile("h1 0 all.q@h1\n"), DataError);
}

TEST(NodeFile, CountsHowOftenAHostStandsThere) {
  EXPECT_EQ(hosts_of_node_file("n2\nn1\r\nn2\n\n n1 \nn3"), (Hosts{{"n2", 2}, {"n1", 2}, {"n3", 1}}));
}

TEST(TasksPerNode, RepeatsWhatIsTaken) {
  EXPECT_EQ(tasks_per_node("2(x3),1"), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(tasks_per_node("8"), (std::vector<int>{8}));
}

TEST(TasksPerNode, RefusesDamage) {
  for (const char* text : {"", "x", "2(x", "2(x3", "2(x0)", "2(x99999999999)", ",1"}) {
    EXPECT_THROW(tasks_per_node(text), DataError) << text;
  }
}

TEST(HostLines, AreThoseOfAHostFile) { EXPECT_EQ(host_lines({{"h1", 1}, {"h2", 4}}), "h1\nh2 slots=4\n"); }

TEST(FindAllocation, ReadsTheFileThatTheSchedulerNames) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "hosts", "h1 2 all.q@h1 UNDEFINED\n");
  const auto found = find_allocation(variables({{"PE_HOSTFILE", (folder / "hosts").string()}}));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->scheduler, Scheduler::grid_engine);
  EXPECT_EQ(found->hosts, (Hosts{{"h1", 2}}));
  write_file_atomic(folder / "nodes", "n1\nn1\nn2\n");
  EXPECT_EQ(find_allocation(variables({{"PBS_NODEFILE", (folder / "nodes").string()}}))->hosts,
            (Hosts{{"n1", 2}, {"n2", 1}}));
}

TEST(FindAllocation, SaysWhatIsMissing) {
  EXPECT_FALSE(find_allocation(variables({{"PATH", "/bin"}})));
  EXPECT_THROW(std::ignore = find_allocation(variables({{"PE_HOSTFILE", "/no/such/file"}})), Error);
  EXPECT_THROW(std::ignore = find_allocation(variables({{"SLURM_JOB_NODELIST", "h[1-2]"}, {"PATH", "/nowhere"}})),
               UsageError);
}

}  // namespace
}  // namespace dtrain::launcher
