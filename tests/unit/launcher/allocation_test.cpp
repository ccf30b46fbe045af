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

TEST(GpusOfNodes, AreThoseOfTheJobOnEachNode) {
  const char* const text = R"(JobId=7 ArrayJobId=7 ArrayTaskId=3 JobName=a
   NodeList=n[1-3]
   JOB_GRES=gpu:5
     Nodes=n1 CPU_IDs=0-3 Mem=0 GRES=gpu:3(IDX:0-2)
     Nodes=n[2-3] CPU_IDs=0 Mem=0 GRES=gpu:1(IDX:0)
   MinCPUsNode=1 Features=(null)

JobId=8 ArrayJobId=7 ArrayTaskId=2 JobName=a
     Nodes=n4 CPU_IDs=0 Mem=0 GRES=gpu:4(IDX:0-3)
)";
  EXPECT_EQ(gpus_of_nodes(text, "7"), (std::vector<NodeGpus>{{"n1", 3}, {"n[2-3]", 1}}));
  EXPECT_EQ(gpus_of_nodes(text, "8"), (std::vector<NodeGpus>{{"n4", 4}}));
  EXPECT_TRUE(gpus_of_nodes(text, "9").empty());
}

TEST(GpusOfNodes, AddTypesUpAndCountNothingElse) {
  const auto gpus = [](const std::string& gres) {
    return gpus_of_nodes("JobId=7 JobName=a\n  Nodes=n1 CPU_IDs=0 Mem=0 GRES=" + gres, "7").at(0).gpus;
  };
  EXPECT_EQ(gpus("gpu:h100:2(IDX:0,3)"), 2);
  EXPECT_EQ(gpus("shard:8(IDX:0),gpu:h100:2(IDX:0,3),gpu:a100:1(IDX:4),nic:1"), 3);
  EXPECT_EQ(gpus("gpu:4"), 4);
  EXPECT_EQ(gpus("gpu:tesla:0(IDX:)"), 0);
  EXPECT_EQ(gpus(""), 0);
}

// A folder with a stand-in of scontrol.
struct Scontrol {
  Scontrol() {
    write_file_atomic(folder / "scontrol", R"(#!/bin/sh
case "$*" in
  "show job -d 7") printf 'JobId=7 JobName=a\n Nodes=n[1-2] GRES=gpu:2(IDX:0-1)\n Nodes=n3 GRES=\n' ;;
  "show hostnames n[1-2]") printf 'n1\nn2\n' ;;
  *) echo "invalid: $*" >&2; exit 1 ;;
esac
)",
                      0777);
  }
  std::string path() const { return folder.path().string() + ":/usr/bin:/bin"; }
  TemporaryFolder folder;
};

TEST(FindGrantedGpus, NamesEachHostThatHasSome) {
  const Scontrol scontrol;
  EXPECT_EQ(find_granted_gpus(variables({{"SLURM_JOB_ID", "7"}, {"PATH", scontrol.path()}})),
            (std::map<std::string, int>{{"n1", 2}, {"n2", 2}}));
  EXPECT_TRUE(find_granted_gpus(variables({{"SLURM_JOB_ID", "8"}, {"PATH", scontrol.path()}})).empty()) << "it fails";
  EXPECT_TRUE(find_granted_gpus(variables({{"SLURM_JOB_ID", "7"}, {"PATH", "/nowhere"}})).empty()) << "it is not there";
  EXPECT_TRUE(find_granted_gpus(variables({{"PATH", "/nowhere"}})).empty()) << "outside of a job";
}

TEST(FindAllocation, RefusesAHeterogeneousJob) {
  const Scontrol scontrol;
  std::map<std::string, std::string> values = {
      {"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_HET_SIZE", "1"}, {"PATH", scontrol.path()}};
  EXPECT_EQ(find_allocation(variables(values))->hosts, (Hosts{{"n1", 1}, {"n2", 1}}));
  values["SLURM_HET_SIZE"] = "2";
  EXPECT_THROW(std::ignore = find_allocation(variables(values)), UsageError);
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
