#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/external/run_program.hpp>

#include "common/temporary_folder.hpp"
#include "leased_ports.hpp"

namespace dtrain::external {
namespace {

class ForeignRun : public testing::Test {
 protected:
  ForeignRun() { make_folder(folder_ / "logs"); }

  Ended run(const std::string& script, Program program = {}) {
    program.command = {"sh", "-c", script};
    return run_command(std::move(program));
  }

  Ended run_command(Program program) {
    program.job = "test";
    const auto membership = elastic::make_fixed_membership(comm::make_single());
    return run_program(program, here(), *membership);
  }

  RunContext here() const {
    return {.host = "here",
            .address = "127.0.0.1",
            .job_folder = folder_.path(),
            .environment = own_environment(),
            .mark = "DTRAIN_PROGRAM=" + folder_.path().filename().string()};
  }

  TemporaryFolder folder_;
};

TEST_F(ForeignRun, IsDoneWhenTheProgramIs) { EXPECT_EQ(run("test $WORLD_SIZE = 1").how, Ended::How::done); }

TEST_F(ForeignRun, ItsProgramFindsTheHostsOfItsGeneration) {
  EXPECT_EQ(run("test \"$(cat $WORKER_HOST_FILE)\" = here").how, Ended::How::done);
  EXPECT_TRUE(is_run_file("run/0/host_worker", false));
}

TEST_F(ForeignRun, SaysThatTheProgramStartsBeforeItDoes) {
  int starts = 0;
  RunContext context = here();
  context.before_start = [&](const RunContext::Start& start) {
    ++starts;
    EXPECT_EQ(start.rank, 0);
    EXPECT_EQ(start.ranks, 1);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "ran"));
  };
  Program program;
  program.command = {"sh", "-c", "touch " + (folder_ / "ran").string()};
  program.job = "test";
  EXPECT_EQ(run_program(program, context, *elastic::make_fixed_membership(comm::make_single())).how, Ended::How::done);
  EXPECT_EQ(starts, 1);
}

TEST_F(ForeignRun, FailsAsTheProgramDoes) {
  const Ended code = run("exit 3");
  EXPECT_EQ(code.how, Ended::How::failed);
  EXPECT_EQ(code.end.shell_code(), 3);
  EXPECT_EQ(code.reason, "its program ended with exit code 3");
  const Ended signal = run("kill -SEGV $$");
  EXPECT_EQ(signal.end.shell_code(), 139);
  EXPECT_EQ(signal.reason, "its program was killed by signal 11 (SIGSEGV)");
}

TEST_F(ForeignRun, SaysWhatCannotBeStarted) {
  Program program;
  program.command = {"no-such-program"};
  const auto membership = elastic::make_fixed_membership(comm::make_single());
  EXPECT_THROW(run_program(program, here(), *membership), Error);
}

// A killed process is still listed until the system has ended it.
TEST_F(ForeignRun, LeavesNothingBehind) {
  EXPECT_EQ(run("setsid sleep 1000 & sleep 1000 & exit 0").how, Ended::How::done);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!processes_marked(here().mark).empty() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(processes_marked(here().mark).empty());
}

TEST_F(ForeignRun, EndsServersThatDoNotEnd) {
  Program program;
  program.servers = 1;
  program.grace = std::chrono::milliseconds(200);
  program.stop_signal = SIGUSR1;
  const Ended ended =
      run("serves=$DTRAIN_RUN_DIR/serves; "
          "if [ $DMLC_ROLE = worker ]; then while [ ! -e $serves ]; do sleep 0.01; done; exit 0; fi; "
          "trap '' USR1; echo I serve; touch $serves; sleep 1000",
          program);
  EXPECT_EQ(ended.how, Ended::How::done);
  const std::string log = read_file(folder_ / "logs/here.0.ps0.log");
  EXPECT_EQ(log.size(), std::string("2026-01-31T23:59:59.123456Z I serve\n").size()) << log;
  EXPECT_TRUE(log.ends_with("Z I serve\n")) << log;
  EXPECT_TRUE(processes_marked(here().mark).empty());
}

TEST_F(ForeignRun, LogsAllThatAServerWritesWhileItsRankWaits) {
  Program program;
  program.servers = 1;
  const Ended ended =
      run("done=$DTRAIN_RUN_DIR/done; "
          "if [ $DMLC_ROLE = worker ]; then while [ ! -e $done ]; do sleep 0.01; done; exit 0; fi; "
          "seq 100000; printf 'no end'; touch $done",
          program);
  EXPECT_EQ(ended.how, Ended::How::done);
  const std::string log = read_file(folder_ / "logs/here.0.ps0.log");
  EXPECT_EQ(std::ranges::count(log, '\n'), 100001);
  EXPECT_NE(log.find("Z 100000\n"), log.npos);
  EXPECT_TRUE(log.ends_with("Z no end\n"));
}

TEST_F(ForeignRun, AFailedServerIsAFailure) {
  Program program;
  program.servers = 1;
  const Ended ended = run("if [ $DMLC_ROLE = server ]; then exit 4; fi; sleep 1000", program);
  EXPECT_EQ(ended.reason, "its ps 0 ended with exit code 4");
}

TEST_F(ForeignRun, StartsMxnetsSchedulerOnlyWhenSomeoneCalls) {
  Program program;
  program.servers = 1;
  program.grace = std::chrono::milliseconds(200);
  const std::string script =
      "case $DMLC_ROLE in scheduler) touch $DTRAIN_RUN_DIR/scheduler;; server) exit 0;; worker) $CALL;; esac";
  EXPECT_EQ(run(script, program).how, Ended::How::done);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/scheduler"));
  program.worker_environment = {
      "CALL=eval exec 3<>/dev/tcp/$DMLC_PS_ROOT_URI/$DMLC_PS_ROOT_PORT; "
      "while [ ! -e $DTRAIN_RUN_DIR/scheduler ]; do sleep 0.01; done"};
  program.command = {"bash", "-c", script};
  EXPECT_EQ(run_command(program).how, Ended::How::done);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/scheduler"));
}

TEST_F(ForeignRun, TellsWhatTorchsRecordWroteOfTheError) {
  const Ended plain = run("echo '{\"message\": \"it broke\"}' >$TORCHELASTIC_ERROR_FILE; exit 1");
  EXPECT_EQ(plain.reason, "its program ended with exit code 1: it broke");
  const Ended structured = run(
      "echo '{\"message\": {\"message\": \"ValueError: no\", \"extraInfo\": {}}}' >$TORCHELASTIC_ERROR_FILE; exit 1");
  EXPECT_EQ(structured.reason, "its program ended with exit code 1: ValueError: no");
  EXPECT_EQ(run("echo '{' >$TORCHELASTIC_ERROR_FILE; exit 1").reason, "its program ended with exit code 1");
  EXPECT_EQ(run("exit 1").reason, "its program ended with exit code 1") << "the file of an earlier start";
}

TEST_F(ForeignRun, IsStuckWhenItFailsWithoutGettingFurther) {
  Program program;
  program.fruitless_limit = 1;
  EXPECT_EQ(run("exit 1", program).how, Ended::How::stuck);
}

// One generation, which all ranks stop as soon as `ready` says so.
class StoppedTogether final : public elastic::Membership {
 public:
  StoppedTogether(std::unique_ptr<comm::Communicator> communicator, std::function<bool()> ready)
      : fixed_(elastic::make_fixed_membership(std::move(communicator))), ready_(std::move(ready)) {}
  void probed(const std::string& hash) override { fixed_->probed(hash); }
  elastic::Entry enter(const elastic::TrainingPosition& position) override { return fixed_->enter(position); }
  void entered(const elastic::TrainingPosition& position) override { fixed_->entered(position); }
  std::uint64_t vote() override { return ready_() ? 1 : 0; }
  elastic::Verdict judge(std::span<const std::uint64_t> votes, bool) override {
    return std::ranges::count(votes, 1u) > 0 ? elastic::Verdict::stop : elastic::Verdict::go_on;
  }
  void require_generation() override {}
  void begin_apply() override {}
  void end_apply(const elastic::TrainingPosition&) override {}
  void lost(const PeerLost& error) override { fixed_->lost(error); }
  void progress(elastic::Phase) override {}
  void computes(double) override {}
  void report(const Json&) override {}

 private:
  const std::unique_ptr<elastic::Membership> fixed_;
  const std::function<bool()> ready_;
};

// A rank may learn from another one that the job stops, before it hears why. The programs end together: both ranks are
// this process here, and the first that has stopped its own program kills all that it finds below its process.
TEST_F(ForeignRun, AnInterruptIsOneForEveryRank) {
  Program program;
  program.job = "test";
  program.stop_signal = SIGTERM;
  program.interrupt_signal = SIGINT;
  program.grace = std::chrono::seconds(60);
  program.command = {"sh", "-c",
                     "cd " + folder_.path().string() +
                         "; end() { echo $1 >new$RANK; mv new$RANK end$RANK; "
                         "while [ ! -e end0 ] || [ ! -e end1 ]; do sleep 0.02; done; exit; }; "
                         "trap 'end INT' INT; trap 'end TERM' TERM; "
                         "touch ready$RANK; while :; do sleep 0.02; done"};
  const auto ready = [&] {
    return std::filesystem::exists(folder_ / "ready0") && std::filesystem::exists(folder_ / "ready1");
  };
  auto world = comm::make_local_world(2);
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      RunContext mine = here();
      mine.slot = rank;
      if (rank == 0) mine.interrupted = ready;
      StoppedTogether membership(std::move(world[static_cast<std::size_t>(rank)]), ready);
      EXPECT_EQ(run_program(program, mine, membership).how, Ended::How::stopped);
    });
  }
  ranks.clear();
  for (const char* end : {"end0", "end1"}) EXPECT_EQ(read_file(folder_ / end), "INT\n") << end;
}

TEST(LeasedPorts, AreNobodyElses) {
  const LeasedPorts some("127.0.0.1", 300), others("127.0.0.1", 300);
  std::set<std::uint16_t> ports(some.numbers().begin(), some.numbers().end());
  ports.insert(others.numbers().begin(), others.numbers().end());
  EXPECT_EQ(ports.size(), 600u);
}

TEST(LeasedPorts, CanBeBoundByAnybodyWhoIsToldOfThem) {
  const LeasedPorts ports("127.0.0.1", 1);
  const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(ports.numbers()[0]);
  ::inet_pton(AF_INET, "127.0.0.1", &place.sin_addr);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&place), sizeof place), 0);
}

TEST(LeasedPorts, AreOfAnAddressOfThisMachine) { EXPECT_THROW(LeasedPorts("203.0.113.7", 1), Error); }

}  // namespace
}  // namespace dtrain::external
