#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include <dtrain/base/error.hpp>

#include "rank_processes.hpp"
#include "some_placement.hpp"

namespace dtrain::external {
namespace {

using Environment = std::map<std::string, std::string>;

const RunContext kHere{.host = "host0",
                       .address = "10.0.0.1",
                       .processors = 8,
                       .job_folder = "/job",
                       .environment = {"PATH=/bin", "LANG=C"},
                       .mark = "DTRAIN_PROGRAM=x.1."};

Environment environment_of(const RankProcess& process) {
  Environment environment;
  for (const std::string& variable : process.environment) {
    const std::size_t end = variable.find('=');
    EXPECT_TRUE(environment.emplace(variable.substr(0, end), variable.substr(end + 1)).second) << variable << " twice";
  }
  return environment;
}

Environment worker_environment(const Program& program, const RankPlacement& placement, int rank) {
  return environment_of(processes_of(program, placement, rank, kHere).front());
}

const Program kProgram{.command = {"train", "a b"}, .max_restarts = 3, .job = "x"};

TEST(ForeignParts, AWorkerIsToldWhatTorchrunTells) {
  RankPlacement placement = some_placement({2, 2});
  placement.failures = 1;
  const Environment got = worker_environment(kProgram, placement, 3);
  const Environment wanted = {{"RANK", "3"},
                              {"LOCAL_RANK", "1"},
                              {"WORLD_SIZE", "4"},
                              {"LOCAL_WORLD_SIZE", "2"},
                              {"GROUP_RANK", "1"},
                              {"GROUP_WORLD_SIZE", "2"},
                              {"NODE_RANK", "1"},
                              {"ROLE_RANK", "3"},
                              {"ROLE_WORLD_SIZE", "4"},
                              {"ROLE_NAME", "default"},
                              {"MASTER_ADDR", "10.0.0.1"},
                              {"MASTER_PORT", "998"},
                              {"TORCHELASTIC_RESTART_COUNT", "1"},
                              {"TORCHELASTIC_MAX_RESTARTS", "3"},
                              {"TORCHELASTIC_RUN_ID", "x"},
                              {"TORCHELASTIC_USE_AGENT_STORE", "False"},
                              {"TORCHELASTIC_ERROR_FILE", "/job/run/3/error.json"},
                              {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
                              {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}};
  for (const auto& [name, value] : wanted) EXPECT_EQ(got.at(name), value) << name;
}

TEST(ForeignParts, AWorkerIsToldWhatHorovodrunTells) {
  const Environment got = worker_environment(kProgram, some_placement({2, 1}), 1);
  const Environment wanted = {{"HOROVOD_RANK", "1"},
                              {"HOROVOD_SIZE", "3"},
                              {"HOROVOD_LOCAL_RANK", "1"},
                              {"HOROVOD_LOCAL_SIZE", "2"},
                              {"HOROVOD_CROSS_RANK", "0"},
                              {"HOROVOD_CROSS_SIZE", "1"},
                              {"HOROVOD_HOSTNAME", "10.0.0.1"},
                              {"HOROVOD_GLOO_RENDEZVOUS_ADDR", "10.0.0.1:999/secret"},
                              {"HOROVOD_GLOO_RENDEZVOUS_PORT", "999"},
                              {"HOROVOD_CONTROLLER", "gloo"},
                              {"HOROVOD_CPU_OPERATIONS", "gloo"},
                              {"HOROVOD_GLOO_IFACE", "eth0"}};
  for (const auto& [name, value] : wanted) EXPECT_EQ(got.at(name), value) << name;
}

TEST(ForeignParts, TensorFlowAndJaxFindTheirPeers) {
  const Environment got = worker_environment(kProgram, some_placement({1, 1}), 1);
  EXPECT_EQ(got.at("TF_CONFIG"),
            R"({"cluster":{"worker":["10.0.0.1:1003","10.0.0.2:2003"]},"task":{"type":"worker","index":1}})");
  EXPECT_EQ(got.at("JAX_COORDINATOR_ADDRESS"), "10.0.0.1:1002");
}

TEST(ForeignParts, AnIpv6AddressBeforeAPortStandsInBrackets) {
  RankPlacement placement = some_placement({1, 1});
  for (RankInfo& info : placement.ranks) info.address = "fd00::" + std::to_string(info.ports[0]);
  Program program = kProgram;
  program.jax = true;
  const std::string first = placement.ranks.front().address, second = placement.ranks.back().address;
  const Environment got = worker_environment(program, placement, 1);
  EXPECT_EQ(got.at("MASTER_ADDR"), first);
  EXPECT_EQ(got.at("TF_CONFIG"),
            fmt::format(R"({{"cluster":{{"worker":["[{}]:1003","[{}]:2003"]}},"task":{{"type":"worker","index":1}}}})",
                        first, second));
  EXPECT_EQ(got.at("JAX_COORDINATOR_ADDRESS"), fmt::format("[{}]:1002", first));
  EXPECT_EQ(got.at("OMPI_MCA_orte_hnp_uri"), fmt::format("0.0;tcp6://[{}]:0", first));
  EXPECT_EQ(got.at("HOROVOD_GLOO_RENDEZVOUS_ADDR"), fmt::format("[{}]:999/secret", first));
}

TEST(ForeignParts, WithoutARendezvousHorovodFindsNoneAndFails) {
  RankPlacement placement = some_placement({2});
  placement.ranks.front().rendezvous = 0;
  const Environment got = worker_environment(kProgram, placement, 1);
  EXPECT_EQ(got.at("HOROVOD_SIZE"), "2");
  EXPECT_FALSE(got.contains("HOROVOD_GLOO_RENDEZVOUS_ADDR"));
}

TEST(ForeignParts, JaxFindsItsNumberOfProcessesWhereTheProgramWantsThem) {
  Program program = kProgram;
  EXPECT_FALSE(worker_environment(program, some_placement({1, 2}), 2).contains("OMPI_COMM_WORLD_RANK"));
  program.jax = true;
  const Environment got = worker_environment(program, some_placement({1, 2}), 2);
  EXPECT_TRUE(got.contains("OMPI_MCA_orte_hnp_uri"));
  EXPECT_EQ(got.at("OMPI_COMM_WORLD_SIZE"), "3");
  EXPECT_EQ(got.at("OMPI_COMM_WORLD_RANK"), "2");
  EXPECT_EQ(got.at("OMPI_COMM_WORLD_LOCAL_RANK"), "1");
}

TEST(ForeignParts, WithServersRankZeroIsTensorFlowsChief) {
  Program program = kProgram;
  program.servers = 1;
  const std::string cluster =
      R"({"cluster":{"ps":["10.0.0.1:1004"],"chief":["10.0.0.1:1003"],"worker":["10.0.0.2:2003"]},"task":)";
  const RankPlacement placement = some_placement({1, 1}, 1);
  const std::vector<RankProcess> first = processes_of(program, placement, 0, kHere);
  EXPECT_EQ(environment_of(first[0]).at("TF_CONFIG"), cluster + R"({"type":"chief","index":0}})");
  EXPECT_EQ(environment_of(first[1]).at("TF_CONFIG"), cluster + R"({"type":"ps","index":0}})");
  EXPECT_EQ(worker_environment(program, placement, 1).at("TF_CONFIG"), cluster + R"({"type":"worker","index":0}})");
}

TEST(ForeignParts, ARankSeesItsShareOfTheGpus) {
  Program program = kProgram;
  EXPECT_FALSE(worker_environment(program, some_placement({2}), 1).contains("CUDA_VISIBLE_DEVICES"));
  program.gpus_per_rank = 2;
  EXPECT_EQ(worker_environment(program, some_placement({1, 2}), 2).at("CUDA_VISIBLE_DEVICES"), "2,3");
  RunContext here = kHere;
  here.environment = {"CUDA_VISIBLE_DEVICES=7,GPU-5,1"};
  program.gpus_per_rank = 1;
  const auto gpus = [&](int rank) {
    return environment_of(processes_of(program, some_placement({4}), rank, here).front()).at("CUDA_VISIBLE_DEVICES");
  };
  EXPECT_EQ(gpus(1), "GPU-5");
  EXPECT_THROW(gpus(3), Error);
}

std::string gpus_of(const Program& program, int rank, const RunContext& here) {
  return environment_of(processes_of(program, some_placement({4}), rank, here).front()).at("CUDA_VISIBLE_DEVICES");
}

TEST(ForeignParts, TheGpusThatThePersonNamesAreDivided) {
  RunContext here = kHere;
  here.environment = {"CUDA_VISIBLE_DEVICES=0"};
  Program program = kProgram;
  program.gpus_per_rank = 1;
  program.environment = {"CUDA_VISIBLE_DEVICES=4,5,6,7"};
  EXPECT_EQ(gpus_of(program, 1, here), "5");
  program.worker_environment = {"CUDA_VISIBLE_DEVICES=2,3"};
  EXPECT_EQ(gpus_of(program, 1, here), "3");
  program.gpus_per_rank = 0;
  EXPECT_EQ(gpus_of(program, 1, here), "2,3") << "without --gpus-per-rank it stays";
}

TEST(ForeignParts, ARankThatFindsTooFewGpusIsRefused) {
  Program program = kProgram;
  program.gpus_per_rank = 1;
  const auto refusal = [&](const RunContext& here) {
    try {
      return "got " + gpus_of(program, 2, here);
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  RunContext here = kHere;
  for (const char* none : {"", "-1", "-1,0,1,2"}) {
    here.environment = {fmt::format("CUDA_VISIBLE_DEVICES={}", none)};
    EXPECT_EQ(refusal(here), fmt::format("rank 2 on host0 needs GPU 2 of its host, but "
                                         "CUDA_VISIBLE_DEVICES=\"{}\" shows no GPU there",
                                         none));
  }
  here.environment = {};
  here.gpus = 2;
  EXPECT_EQ(refusal(here), "rank 2 on host0 needs GPU 2 of its host, but only 2 are there");
  here.gpus = 3;
  EXPECT_EQ(refusal(here), "got 2");
}

TEST(ForeignParts, ProcessorsAreSharedUnlessThePersonSaysOtherwise) {
  EXPECT_EQ(worker_environment(kProgram, some_placement({4}), 0).at("OMP_NUM_THREADS"), "2");
  RunContext here = kHere;
  here.environment = {"OMP_NUM_THREADS=5", "GLOO_SOCKET_IFNAME=lo"};
  const Environment got = environment_of(processes_of(kProgram, some_placement({4}), 0, here).front());
  EXPECT_EQ(got.at("OMP_NUM_THREADS"), "5");
  EXPECT_EQ(got.at("GLOO_SOCKET_IFNAME"), "lo");
  EXPECT_EQ(got.at("NCCL_SOCKET_IFNAME"), "eth0");
}

TEST(ForeignParts, WithoutServersNothingMakesMxnetStartOne) {
  const Environment got = worker_environment(kProgram, some_placement({2}), 0);
  EXPECT_TRUE(std::ranges::none_of(got, [](const auto& entry) { return entry.first.starts_with("DMLC_"); }));
}

TEST(ForeignParts, MxnetsSchedulerIsApartAndServersComeInTurn) {
  Program program = kProgram;
  program.servers = 2;
  const RankPlacement placement = some_placement({1, 1}, 2);
  const std::vector<RankProcess> first = processes_of(program, placement, 0, kHere),
                                 second = processes_of(program, placement, 1, kHere);
  ASSERT_EQ(first.size(), 2u);
  ASSERT_EQ(second.size(), 2u);
  EXPECT_TRUE(may_need_scheduler(program));
  const Environment scheduler = environment_of(scheduler_of(program, placement, kHere));
  EXPECT_EQ(environment_of(first[0]).at("DMLC_ROLE"), "worker");
  EXPECT_EQ(environment_of(first[1]).at("DMLC_ROLE"), "server");
  EXPECT_EQ(scheduler.at("DMLC_ROLE"), "scheduler");
  EXPECT_EQ(scheduler.at("DMLC_PS_ROOT_PORT"), "1001");
  const Environment server = environment_of(second[1]);
  EXPECT_EQ(server.at("DMLC_SERVER_ID"), "1");
  EXPECT_EQ(server.at("DMLC_PS_ROOT_URI"), "10.0.0.1");
  EXPECT_EQ(server.at("DMLC_PS_ROOT_PORT"), "997") << "the port that waits for a call";
  EXPECT_EQ(server.at("DMLC_NUM_WORKER"), "2");
  EXPECT_EQ(server.at("DMLC_NUM_SERVER"), "2");
  EXPECT_EQ(server.at("CUDA_VISIBLE_DEVICES"), "");
  EXPECT_FALSE(server.contains("RANK")) << "a server is no rank of PyTorch";
}

TEST(ForeignParts, NoProcessLetsMxnetChangeTheWorkersOrTheHostFile) {
  RunContext here = kHere;
  here.environment = {"ELASTIC_TRAINING_ENABLED=1"};
  Program program = kProgram;
  program.servers = 1;
  const RankPlacement placement = some_placement({1, 1}, 1);
  std::vector<RankProcess> processes = processes_of(program, placement, 0, here);
  processes.push_back(scheduler_of(program, placement, here));
  ASSERT_EQ(processes.size(), 3u);
  for (const RankProcess& process : processes) {
    const Environment got = environment_of(process);
    EXPECT_FALSE(got.contains("ELASTIC_TRAINING_ENABLED")) << role_name(process.role);
    EXPECT_EQ(got.at("WORKER_HOST_FILE"), "/job/run/0/host_worker") << role_name(process.role);
  }
}

TEST(ForeignParts, OnlyTheRolesOfOtherLaunchersAreForgotten) {
  RunContext here = kHere;
  here.environment = {"DMLC_ROLE=server", "LOCAL_RANK=7", "SLURM_PROCID=1", "LOCAL_DATA=/data", "GROUP_NAME=mine"};
  Program program = kProgram;
  program.servers = 1;
  const Environment server = environment_of(processes_of(program, some_placement({1}, 1), 0, here)[1]);
  EXPECT_EQ(server.at("DMLC_ROLE"), "server");
  EXPECT_FALSE(server.contains("LOCAL_RANK"));
  EXPECT_FALSE(server.contains("SLURM_PROCID"));
  EXPECT_EQ(server.at("LOCAL_DATA"), "/data");
  EXPECT_EQ(server.at("GROUP_NAME"), "mine");
}

TEST(ForeignParts, WhatSaysNothingAboutARoleStays) {
  const std::vector<std::string> kept = {"SLURM_JOBID=7",         "SLURM_ARRAY_TASK_ID=3", "SLURM_TMPDIR=/scratch",
                                         "SLURM_CPUS_PER_TASK=8", "SLURM_JOB_NODELIST=a",  "DMLC_PS_VERBOSE=2",
                                         "DMLC_INTERFACE=ib0"};
  const std::vector<std::string> removed = {
      "SLURM_NTASKS=4",    "SLURM_NTASKS_PER_NODE=2", "SLURM_STEP_ID=0",    "SLURM_STEPID=0",
      "SLURM_TASK_PID=9",  "SLURM_LOCALID=1",         "SLURM_PMIX_X=1",     "SLURM_MPI_TYPE=pmix",
      "DMLC_NUM_WORKER=3", "DMLC_WORKER_ID=1",        "DMLC_TRACKER_URI=x", "DMLC_PS_ROOT_PORT=1",
      "SLURM_SRUN_COMM=x", "MPI_LOCALRANKID=0",       "MPI_LOCALNRANKS=1",  "MV2_COMM_WORLD_LOCAL_RANK=0"};
  RunContext here = kHere;
  here.environment = kept;
  here.environment.insert(here.environment.end(), removed.begin(), removed.end());
  const std::vector<std::string> got = processes_of(kProgram, some_placement({1}), 0, here).front().environment;
  for (const std::string& variable : kept) EXPECT_EQ(std::ranges::count(got, variable), 1) << variable;
  for (const std::string& variable : removed) EXPECT_EQ(std::ranges::count(got, variable), 0) << variable;
  Program program = kProgram;
  program.servers = 1;
  EXPECT_EQ(environment_of(processes_of(program, some_placement({1}, 1), 0, here).front()).at("DMLC_INTERFACE"), "ib0");
}

TEST(ForeignParts, VariablesOfThePersonHoldForTheRoleThatTheyAreFor) {
  Program program = kProgram;
  program.servers = 1;
  program.environment = {"A=1", "RANK=own"};
  program.worker_environment = {"B=w"};
  program.server_environment = {"B=s"};
  const std::vector<RankProcess> processes = processes_of(program, some_placement({1}, 1), 0, kHere);
  EXPECT_EQ(environment_of(processes[0]).at("RANK"), "own");
  EXPECT_EQ(environment_of(processes[0]).at("B"), "w");
  EXPECT_EQ(environment_of(processes[1]).at("B"), "s");
  EXPECT_EQ(environment_of(processes[1]).at("A"), "1");
}

TEST(ForeignParts, PlaceholdersSayWhoAProcessIs) {
  Program program = kProgram;
  program.fills_placeholders = true;
  program.servers = 1;
  program.command = {"train", "--job={role}:{task_index}", "{ps_hosts}/{worker_hosts}", "{rank}{other}{"};
  const std::vector<RankProcess> processes = processes_of(program, some_placement({1, 1}, 1), 0, kHere);
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_FALSE(may_need_scheduler(program)) << "scripts that take arguments need none";
  const std::vector<std::string> worker = {"train", "--job=worker:0", "10.0.0.1:1004/10.0.0.1:1003,10.0.0.2:2003",
                                           "0{other}{"};
  EXPECT_EQ(processes[0].command, worker);
  EXPECT_EQ(processes[1].command[1], "--job=ps:0");
}

TEST(ForeignParts, TheLocalRankCountsOnOneMachine) {
  Program program = kProgram;
  program.fills_placeholders = true;
  program.command = {"train", "--gpu={local_rank}"};
  EXPECT_EQ(processes_of(program, some_placement({2, 2}), 3, kHere).front().command[1], "--gpu=1");
}

TEST(ForeignParts, BracesStayWithoutTheOption) {
  Program program = kProgram;
  program.command = {"train", "{rank}"};
  EXPECT_EQ(processes_of(program, some_placement({1}), 0, kHere).front().command, program.command);
}

}  // namespace
}  // namespace dtrain::external
