#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/launcher/scheduler_job.hpp>

#include "agent_errors.hpp"
#include "starter_command.hpp"

namespace dtrain::launcher {
namespace {

using Words = std::vector<std::string>;
const Words kAgent = {"/opt/dtrain", "agent", "--join", "/jobs/a b/join_1.json"};

std::string line_for(ProcessStarter starter, const std::string& program, const std::string& host,
                     bool as_root = false) {
  return join(starter_command({starter, program, as_root, "login.site"}, {.name = host, .host = host}, kAgent), "|");
}

TEST(StarterCommand, OfOpenMpiLeavesAllProcessorsToTheWorkers) {
  EXPECT_EQ(line_for(ProcessStarter::open_mpi, "/usr/bin/mpirun", "h1"),
            "/usr/bin/mpirun|--host|h1|-np|1|--bind-to|none|/opt/dtrain|agent|--join|/jobs/a b/join_1.json");
  EXPECT_EQ(line_for(ProcessStarter::open_mpi, "/usr/bin/mpirun", "h1", true),
            "/usr/bin/mpirun|--host|h1|-np|1|--bind-to|none|--allow-run-as-root|/opt/dtrain|agent|--join|"
            "/jobs/a b/join_1.json");
}

TEST(StarterCommand, OfMpichNamesTheHostInItsOwnWay) {
  EXPECT_EQ(line_for(ProcessStarter::hydra, "/opt/mpich/bin/mpirun", "h1", true),
            "/opt/mpich/bin/mpirun|-hosts|h1|-n|1|/opt/dtrain|agent|--join|/jobs/a b/join_1.json");
}

TEST(StarterCommand, OfSlurmSharesTheNodeAndWaitsForNobody) {
  EXPECT_EQ(line_for(ProcessStarter::srun, "/usr/bin/srun", "n7"),
            "/usr/bin/srun|--overlap|--nodes=1|--ntasks=1|--nodelist=n7|--cpu-bind=none|--mpi=none|--input=none|"
            "--kill-on-bad-exit=0|--export=ALL|--immediate=30|--job-name=dtrain-agent|--quiet|/opt/dtrain|agent|--join|"
            "/jobs/a b/join_1.json");
}

TEST(StarterCommand, OfSlurmAsksForTheGpusOfItsOwnHost) {
  const StarterCall call{.starter = ProcessStarter::srun, .program = "/usr/bin/srun", .gpus = 3};
  EXPECT_NE(join(starter_command(call, {.name = "n7", .host = "n7"}, kAgent), "|").find("|--gpus=3|/opt/dtrain|agent"),
            std::string::npos);
}

TEST(StarterCommand, OfGridEngineIsNoneOnTheJobsOwnHost) {
  EXPECT_EQ(line_for(ProcessStarter::qrsh, "/usr/bin/qrsh", "h1"),
            "/usr/bin/qrsh|-inherit|-nostdin|-noshell|h1|/opt/dtrain|agent|--join|/jobs/a b/join_1.json");
  EXPECT_EQ(line_for(ProcessStarter::qrsh, "/usr/bin/qrsh", "login"), "/opt/dtrain|agent|--join|/jobs/a b/join_1.json");
}

TEST(StarterCommand, RefusesAUserAndAPort) {
  const StarterCall call{ProcessStarter::srun, "/usr/bin/srun"};
  EXPECT_THROW(starter_command(call, {.name = "u@h1", .user = "u", .host = "h1"}, kAgent), UsageError);
  EXPECT_THROW(starter_command(call, {.name = "h1:22", .host = "h1", .port = 22}, kAgent), UsageError);
}

TEST(KindOfMpirun, IsToldByWhatItSays) {
  EXPECT_EQ(kind_of_mpirun("mpirun (Open MPI) 4.1.4\n\nReport bugs to"), ProcessStarter::open_mpi);
  EXPECT_EQ(kind_of_mpirun("mpirun (Open MPI) 5.0.3"), ProcessStarter::open_mpi);
  EXPECT_EQ(kind_of_mpirun("HYDRA build details:\n    Version: 4.0.2\n"), ProcessStarter::hydra);
  EXPECT_EQ(kind_of_mpirun("Intel(R) MPI Library for Linux* OS, Version 2021.9"), ProcessStarter::hydra);
  EXPECT_THROW(kind_of_mpirun("LAM 7.1.4\n"), UsageError);
}

TEST(VariablesOfStarters, AreThoseThatMakeAProcessARank) {
  EXPECT_EQ(variables_of_starters({"PATH=/bin", "OMPI_COMM_WORLD_RANK=0", "SLURM_PROCID=0", "SLURM_JOB_ID=7",
                                   "PMI_RANK=0", "SLURM_JOB_NODELIST=h[1-2]", "SLURM_NTASKS=1"}),
            (Words{"OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK", "SLURM_NTASKS"}));
}

TEST(WithoutStepOptions, LeavesSrunToTheCommandLine) {
  EXPECT_EQ(without_step_options({"SLURM_JOB_ID=7", "SLURM_NTASKS_PER_NODE=2", "SLURM_NTASKS_PER_GPU=1", "SLURM_GPUS=4",
                                  "SLURM_GPUS_ON_NODE=2", "SLURM_GPUS_PER_TASK=1", "SLURM_GPUS_PER_NODE=2",
                                  "SLURM_TRES_PER_TASK=gres:gpu:1", "SLURM_GPU_BIND=single:1", "SLURM_CPUS_PER_TASK=2",
                                  "SRUN_CPUS_PER_TASK=2", "SLURM_TASKS_PER_NODE=2(x2)"}),
            (Words{"SLURM_JOB_ID=7", "SLURM_GPUS_ON_NODE=2", "SLURM_TASKS_PER_NODE=2(x2)"}));
}

TEST(WithoutSecrets, TakesKeysOutAndNothingElse) {
  EXPECT_EQ(without_secrets({"AWS_SECRET_ACCESS_KEY=s", "AWS_REGION=r", "AWS_SESSION_TOKEN=t", "A=b"}),
            (Words{"AWS_REGION=r", "A=b"}));
}

TEST(AgentWords, AreItsOwnWhereOthersSpeakToo) {
  EXPECT_EQ(agent_errors("----\ndtrain: h1: no such folder\nhint: mount it\nmpirun noticed that\n"),
            "h1: no such folder; hint: mount it");
  EXPECT_EQ(agent_errors("srun: error: a\n\n  b\n"), "srun: error: a; b");
}

TEST(SallocCommand, AsksForWholeHostsThatMayFail) {
  const SchedulerJob job{.program = "/usr/bin/salloc", .count = 3, .command = {"/opt/dtrain", "train"}};
  EXPECT_EQ(join(salloc_command(job), " "),
            "/usr/bin/salloc --nodes=3 --exclusive --mem=0 --no-kill --job-name=dtrain /opt/dtrain train");
}

TEST(SallocCommand, HandsThePartitionAndTheHostsOn) {
  const SchedulerJob job{.program = "salloc", .count = 2, .queue = "gpu", .hosts = {"h1", "h2"}, .command = {"d"}};
  EXPECT_EQ(join(salloc_command(job), " "),
            "salloc --nodes=2 --exclusive --mem=0 --no-kill --job-name=dtrain --partition=gpu --nodelist=h1,h2 d");
}

TEST(QrshCommand, WaitsForItsSlots) {
  const SchedulerJob job{.program = "/usr/bin/qrsh",
                         .count = 4,
                         .queue = "all.q",
                         .parallel_environment = "orte",
                         .command = {"d", "e f"}};
  EXPECT_EQ(join(qrsh_command(job), "|"),
            "/usr/bin/qrsh|-now|n|-cwd|-noshell|-nostdin|-N|dtrain|-pe|orte|4|-q|all.q|d|e f");
}

}  // namespace
}  // namespace dtrain::launcher
