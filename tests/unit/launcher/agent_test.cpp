#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/elastic/agent.hpp>

#include "common/temporary_folder.hpp"
#include "world.hpp"

namespace dtrain::launcher {
namespace {

using elastic::HostDown;
using elastic::HostUp;
using elastic::WorkerExited;
using elastic::WorkerSays;

TEST(Agent, JoinsAndLeavesWhenTold) {
  World world(agent_with_worker());
  world.start_host("w1");
  const auto up = world.next<HostUp>();
  EXPECT_EQ(up.host, "w1");
  EXPECT_EQ(up.address, "127.0.0.1");
  world.act([](auto& agent_pool) { agent_pool.end_host("w1"); });
  EXPECT_EQ(world.next<HostDown>().host, "w1");
  EXPECT_TRUE(holds_soon([&] { return world.agents().empty(); }));
}

TEST(Agent, TellsTheWorkerItsJobAndCarriesMessagesBothWays) {
  World world(agent_with_worker(), {.token = "", .job_folder = "", .job = Json::object({{"network", "res\"net"}})});
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 3, 42);
  const auto says = world.next<WorkerSays>();
  EXPECT_EQ(says.worker, 42u);
  EXPECT_EQ(std::get<elastic::Hello>(says.message).pid, 7);
  EXPECT_TRUE(holds_soon([&] { return world.printed("w1.3 job w1 3 127.0.0.1 {\"network\":\"res\\\"net\"}"); }));

  world.act([](auto& agent_pool) { agent_pool.send(42, elastic::Freeze{5}); });
  world.act([](auto& agent_pool) { agent_pool.send(42, elastic::Leave{"by"}); });
  EXPECT_EQ(std::get<elastic::Left>(world.next<WorkerSays>().message).reason, "asked");
  const auto exited = world.next<WorkerExited>();
  EXPECT_EQ(exited.worker, 42u);
  EXPECT_EQ(exited.exit_code, 0);
  EXPECT_EQ(exited.signal, 0);
  ASSERT_EQ(exited.last_lines.size(), 3u);
  EXPECT_EQ(exited.last_lines[1], "told {\"type\":\"freeze\",\"generation\":5}");
}

TEST(Agent, HandsOverTheEnvironmentByteForByte) {
  const std::vector<std::string> odd = {"EMPTY=", "ODD=a  b'\"$HOME`\\*", "LINES=one\ntwo", "BYTES=\xc3\xa4\xff\x01"};
  const TemporaryFolder folder;
  World world(agent_with_shell("env -0 > env; pwd; ls /proc/self/fd"),
              {.token = "", .job_folder = "", .job = {}, .environment = odd, .folder = folder.path()});
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 0, 1);
  const auto exited = world.next<WorkerExited>();
  auto variables = split(read_file(folder / "env"), '\0');
  for (const std::string& variable : odd) EXPECT_EQ(std::erase(variables, variable), 1) << variable;
  std::erase_if(variables, [](const std::string& variable) {
    return variable.empty() || variable.starts_with("DTRAIN_T") || variable.starts_with("PWD=") ||
           variable.starts_with("OLDPWD=") || variable.starts_with("_=") || variable.starts_with("SHLVL=");
  });
  EXPECT_TRUE(variables.empty()) << join(variables, " | ");
  // 0, 1, 2, the socket, and the folder that ls lists: nothing of the agent's or the coordinator's.
  EXPECT_EQ(exited.last_lines.size(), 1 + 5u) << join(exited.last_lines, " ");
}

TEST(Agent, HandsOverArgumentsByteForByte) {
  World world(agent_with({"/usr/bin/printf", "<%s>", "", " ", "'\"$HOME", "two\nlines", "\xc3\xa4\xff"}));
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 0, 1);
  EXPECT_EQ(join(world.next<WorkerExited>().last_lines, "\n"), "<>< ><'\"$HOME><two\nlines><\xc3\xa4\xff>");
}

TEST(Agent, TellsHowAWorkerEndedAndWhatItSaidLast) {
  World world(agent_with_shell("for i in $(seq 1 100); do echo line $i; done >&2; printf unfinished; kill -SEGV $$"));
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 0, 1);
  const auto exited = world.next<WorkerExited>();
  EXPECT_EQ(exited.signal, SIGSEGV);
  ASSERT_EQ(exited.last_lines.size(), 20u);
  EXPECT_EQ(exited.last_lines.front(), "line 82");
  EXPECT_EQ(exited.last_lines.back(), "unfinished");
  EXPECT_TRUE(world.log("w1.0.log").ends_with("line 100\nunfinished\n"));
}

TEST(Agent, ReportsAWorkerThatDoesNotStart) {
  World world(agent_with({"/no/such/program"}));
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 0, 1);
  const auto exited = world.next<WorkerExited>();
  EXPECT_EQ(exited.exit_code, 127);
  EXPECT_NE(join(exited.last_lines, " ").find("/no/such/program"), std::string::npos);
}

TEST(Agent, TearsNoLineOfBusyWorkers) {
  constexpr int kWorkers = 4, kLines = 20'000;
  World world(agent_with_shell("seq -f 'worker line %.0f of a text that is neither short nor long' 1 20000"));
  world.start_host("w1");
  world.next<HostUp>();
  for (int slot = 0; slot < kWorkers; ++slot) world.start_worker("w1", slot, elastic::WorkerId(slot + 1));
  for (int slot = 0; slot < kWorkers; ++slot) world.next<WorkerExited>();
  for (int slot = 0; slot < kWorkers; ++slot) {
    const auto lines = split(world.log("w1." + std::to_string(slot) + ".log"), '\n');
    ASSERT_EQ(lines.size(), kLines + 1u);
    for (int i = 0; i < kLines; ++i) {
      ASSERT_EQ(lines[i], "worker line " + std::to_string(i + 1) + " of a text that is neither short nor long");
    }
  }
}

TEST(Agent, AppendsToTheLogOfTheWorkerBefore) {
  World world(agent_with_shell("echo hello"));
  world.start_host("odd/../name");
  world.next<HostUp>();
  for (elastic::WorkerId worker : {1, 2}) {
    world.start_worker("odd/../name", 0, worker);
    world.next<WorkerExited>();
  }
  EXPECT_EQ(world.log("odd_.._name.0.log"), "hello\nhello\n");
}

TEST(Agent, ShowsTheTokenToNobody) {
  World world(agent_with_shell("sleep 600"));
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 0, 1);
  ASSERT_TRUE(holds_soon([&] { return world.worker_processes().size() == 2; }));
  for (pid_t process : descendants_of(::getpid())) {
    const Path folder = "/proc/" + std::to_string(process);
    for (const char* file : {"cmdline", "environ"}) {
      EXPECT_EQ(read_file(folder / file).find(world.token()), std::string::npos) << file;
    }
  }
}

// A worker with children that left its process group, ignore every polite signal, and lost their parents.
const std::string kStubborn =
    "trap '' TERM HUP INT\n"
    "for i in 1 2; do (setsid sh -c 'trap \"\" TERM HUP INT; (sleep 600 & wait) & wait' &) ; done\n"
    "echo ready; sleep 600 & wait; sleep 600";
constexpr std::size_t kStubbornProcesses = 8;

struct StubbornWorld : World {
  StubbornWorld() : World(agent_with_shell(kStubborn)) {
    start_host("w1");
    next<HostUp>();
    start_worker("w1", 0, 1);
    EXPECT_TRUE(holds_soon([&] { return worker_processes().size() >= kStubbornProcesses; }));
  }
  bool all_gone_in_time() {
    return holds_soon([&] { return worker_processes().empty(); });
  }
};

TEST(NoOrphans, WhenAWorkerIsKilledByItsAgent) {
  StubbornWorld world;
  world.act([](auto& agent_pool) { agent_pool.kill_worker(1, false); });
  EXPECT_EQ(world.next<WorkerExited>().signal, SIGKILL);
  EXPECT_TRUE(world.all_gone_in_time());
  EXPECT_EQ(world.agents().size(), 1u);
}

TEST(NoOrphans, WhenAWorkerIsKilledByAnybody) {
  StubbornWorld world;
  const auto processes = world.worker_processes();
  ::kill(*std::min_element(processes.begin(), processes.end()), SIGKILL);
  EXPECT_EQ(world.next<WorkerExited>().signal, SIGKILL);
  EXPECT_TRUE(world.all_gone_in_time());
}

TEST(NoOrphans, WhenTheHostIsEnded) {
  StubbornWorld world;
  world.act([](auto& agent_pool) { agent_pool.end_host("w1"); });
  EXPECT_EQ(world.next<WorkerExited>().worker, 1u);
  EXPECT_EQ(world.next<HostDown>().host, "w1");
  EXPECT_TRUE(world.all_gone_in_time());
}

TEST(NoOrphans, WhenTheAgentIsKilled) {
  StubbornWorld world;
  ASSERT_EQ(world.agents().size(), 1u);
  ::kill(world.agents()[0], SIGKILL);
  EXPECT_EQ(world.next<HostDown>().host, "w1");
  EXPECT_TRUE(world.all_gone_in_time());
}

TEST(NoOrphans, WhenTheCoordinatorIsGone) {
  StubbornWorld world;
  world.drop_agent_pool();
  EXPECT_TRUE(world.all_gone_in_time());
  EXPECT_TRUE(holds_soon([&] { return world.agents().empty(); }));
}

TEST(NoOrphans, WhenTheCoordinatorIsKilled) {
  std::string folder = testing::TempDir() + "dtrain-launch-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string mark = "DTRAIN_TEST_WORLD=" + to_hex(unpredictable_bytes(8));
  Spawn coordinator = spawn_of({DTRAIN_TEST_AGENT, "coordinator", folder, "/bin/sh", "-c", kStubborn});
  coordinator.environment = {"PATH=/usr/bin:/bin", mark};
  const pid_t process = spawn(coordinator);
  ASSERT_TRUE(holds_soon([&] { return processes_marked(mark).size() >= kStubbornProcesses + 2; }));
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  EXPECT_TRUE(holds_soon([&] { return processes_marked(mark).empty(); }));
  std::filesystem::remove_all(folder);
}

TEST(NoOrphans, WhenTheAgentIsToldToStopByASignal) {
  StubbornWorld world;
  const pid_t agent = world.agents().at(0);
  for (int i = 0; i < 3; ++i) ::kill(agent, i == 1 ? SIGINT : SIGTERM);  // as one that is in a hurry does
  EXPECT_EQ(world.next<HostDown>().host, "w1");
  EXPECT_TRUE(world.all_gone_in_time());
}

// Without their mark: found by their group or by who adopted them.
TEST(NoOrphans, WhenTheyClearedTheirEnvironment) {
  const auto sleepers = [] {
    std::vector<pid_t> found;
    for (pid_t process : descendants_of(::getpid())) {
      if (command_line_of(process) == std::string("sleep\000543\0", 10)) found.push_back(process);
    }
    return found.size();
  };
  World world(agent_with_shell("env -i sleep 543 & (env -i setsid sleep 543 &) ; sleep 600"));
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 0, 1);
  ASSERT_TRUE(holds_soon([&] { return sleepers() == 2; }));
  world.act([](auto& agent_pool) { agent_pool.end_host("w1"); });
  world.next<HostDown>();
  EXPECT_TRUE(holds_soon([&] { return sleepers() == 0; }));
}

// Children of this process that ended and that nobody asked about.
std::size_t zombies() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!std::isdigit(entry.path().filename().string()[0])) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string text;
    std::getline(stat, text);  // nothing when the process ended meanwhile
    count += text.find(") Z " + std::to_string(::getpid()) + " ") != std::string::npos;
  }
  return count;
}

TEST(NoOrphans, NorZombies) {
  const std::size_t before = zombies();  // of coordinators that other tests of this process killed
  StubbornWorld world;
  ::kill(world.agents().at(0), SIGKILL);
  world.next<HostDown>();
  EXPECT_TRUE(world.all_gone_in_time());
  EXPECT_TRUE(holds_soon([&] { return zombies() <= before; }));
}

TEST(NoOrphans, AndABystanderLives) {
  const pid_t bystander = spawn({.executable = "/bin/sleep", .arguments = {"sleep", "600"}});
  {
    StubbornWorld world;
    world.act([](auto& agent_pool) { agent_pool.end_host("w1"); });
    world.next<HostDown>();
  }
  EXPECT_EQ(::waitpid(bystander, nullptr, WNOHANG), 0);
  kill_tree(bystander);
  ::waitpid(bystander, nullptr, 0);
}

TEST(Agent, ReapsWhatItAdopts) {
  World world(agent_with_shell("for i in 1 2 3 4 5; do (setsid sleep 0.1 &) ; done; sleep 600"));
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 0, 1);
  ASSERT_TRUE(holds_soon([&] { return world.worker_processes().size() >= 3; }));
  const std::string agent = std::to_string(world.agents().at(0));
  const auto children = [&] { return std::string(trim(read_file("/proc/" + agent + "/task/" + agent + "/children"))); };
  if (children().empty()) GTEST_SKIP() << "this kernel does not list children";
  EXPECT_TRUE(holds_soon([&] { return split(children(), ' ').size() == 1; }));
}

TEST(StackDump, OfAHungWorkerStandsInItsLog) {
  World world(agent_with_worker());
  world.start_host("w1");
  world.next<HostUp>();
  // A worker has a third of a second for it, which a busy machine may not give to the first one.
  std::string log;
  for (elastic::WorkerId worker = 1; worker <= 5 && log.find("stack of thread") == log.npos; ++worker) {
    world.start_worker("w1", 0, worker);
    world.next<WorkerSays>();
    world.act([&](auto& agent_pool) { agent_pool.kill_worker(worker, true); });
    EXPECT_EQ(world.next<WorkerExited>().signal, SIGKILL);
    log = world.log("w1.0.log");
  }
  EXPECT_NE(log.find("stack of thread"), log.npos) << log;
}

TEST(StackDump, DoesNotWaitForAStoppedWorker) {
  World world(agent_with_worker());
  world.start_host("w1");
  world.next<HostUp>();
  world.start_worker("w1", 0, 1);
  world.next<WorkerSays>();
  const pid_t worker = world.worker_processes().at(0);
  ::kill(worker, SIGSTOP);
  ASSERT_TRUE(holds_soon([&] { return describe_threads(worker).at(0).find("state T") != std::string::npos; }));
  world.act([](auto& agent_pool) { agent_pool.kill_worker(1, true); });
  EXPECT_EQ(world.next<WorkerExited>().signal, SIGKILL);
  EXPECT_NE(world.log("w1.0.log").find("state T"), std::string::npos);
}

}  // namespace
}  // namespace dtrain::launcher
