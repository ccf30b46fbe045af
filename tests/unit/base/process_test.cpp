#include <dtrain/base/process.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <dtrain/base/daemon.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/stack_dump.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/wait_status.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain {
namespace {

using namespace std::chrono_literals;

struct Pipe {
  FileDescriptor read_end, write_end;
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read_end = FileDescriptor(ends[0]);
    write_end = FileDescriptor(ends[1]);
  }
  std::string read_all() {
    write_end = FileDescriptor();
    std::string text;
    char chunk[4096];
    for (ssize_t got; (got = ::read(read_end.get(), chunk, sizeof chunk)) > 0;) text.append(chunk, std::size_t(got));
    return text;
  }
};

std::string output_of(Spawn child) {
  Pipe pipe;
  child.output = pipe.write_end.get();
  const pid_t process = spawn(child);
  const std::string text = pipe.read_all();
  EXPECT_EQ(::waitpid(process, nullptr, 0), process);
  return text;
}

Spawn shell(const std::string& script) {
  return {.executable = "/bin/sh", .arguments = {"sh", "-c", script}, .environment = {"PATH=/usr/bin:/bin"}};
}

template <typename Condition>
bool holds_soon(const Condition& condition) {
  for (int i = 0; i < 6000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

// A zombie is gone: whoever adopted it may be slow to reap it.
bool is_gone(pid_t process) {
  return holds_soon([&] { return ::access(("/proc/" + std::to_string(process) + "/exe").c_str(), F_OK) != 0; });
}

TEST(Spawn, HandsOverArgumentsAndEnvironmentByteForByte) {
  const std::vector<std::string> odd = {"", " ", "a b", "'\"$HOME`\\", "two\nlines", "\xc3\xa4\xff\x01", "*"};
  Spawn child{.executable = "/usr/bin/printf", .arguments = {"printf", "<%s>"}};
  child.arguments.insert(child.arguments.end(), odd.begin(), odd.end());
  std::string expected;
  for (const auto& text : odd) expected += "<" + text + ">";
  EXPECT_EQ(output_of(child), expected);

  Spawn env{.executable = "/usr/bin/env", .arguments = {"env", "-0"}};
  env.environment = {"EMPTY=", "ODD=two\nlines \xc3\xa4\xff", "no assignment"};
  EXPECT_EQ(output_of(env), join(env.environment, std::string(1, '\0')) + '\0');
}

TEST(Spawn, GivesTheChildNoOtherDescriptor) {
  const FileDescriptor leak(::fcntl(0, F_DUPFD, 20));
  const std::string open = output_of({.executable = "/bin/ls", .arguments = {"ls", "/proc/self/fd"}});
  EXPECT_EQ(open, "0\n1\n2\n3\n");  // 3 is the folder that ls lists
}

TEST(Spawn, PlacesDescriptorsThatStandInEachOthersWay) {
  Pipe pipe;
  Spawn child = shell("echo out; echo extra >&3");
  child.output = pipe.write_end.get();
  child.extra = pipe.write_end.get();
  const pid_t process = spawn(child);
  EXPECT_EQ(pipe.read_all(), "out\nextra\n");
  ::waitpid(process, nullptr, 0);
}

TEST(Spawn, SaysWhyAProgramDoesNotStart) {
  EXPECT_THROW(spawn({.executable = "/no/such/program", .arguments = {"x"}}), Error);
  Spawn elsewhere = shell("true");
  elsewhere.folder = "/no/such/folder";
  EXPECT_THROW(spawn(elsewhere), Error);
}

// What starting a process says to a user who may have none, in a process of its own. The limit does not hold for root.
template <typename Start>
std::string hint_at_the_limit(const Start& start) {
  Pipe hint;
  const pid_t process = ::fork();
  if (process == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_NPROC, &none);
    if (::geteuid() == 0 && ::setuid(65'534) != 0) ::_exit(1);
    try {
      start();
    } catch (const Error& error) {
      [[maybe_unused]] const ssize_t written = ::write(hint.write_end.get(), error.hint().data(), error.hint().size());
    }
    ::_exit(0);
  }
  const std::string text = hint.read_all();
  EXPECT_TRUE(wait_for_end(process).ok());
  return text;
}

TEST(Spawn, SaysWhichLimitMayBeTooLow) {
  for (const std::string& hint :
       {hint_at_the_limit([] { spawn(shell("true")); }), hint_at_the_limit([] { fork_process(); })}) {
    EXPECT_NE(hint.find("ulimit -u, currently 0"), std::string::npos) << hint;
    EXPECT_NE(hint.find("pids.max"), std::string::npos) << hint;
  }
  EXPECT_NE(cannot_fork(ENOMEM).hint().find("memory"), std::string::npos);
}

pid_t handler_owner = 0;

// Sends this signal to its own group again and again, until its parent ends.
pid_t start_to_signal(int signal) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(signal, SIG_IGN);
  for (;; ::usleep(20)) ::kill(0, signal);
}

// In a group of its own, for the signals go to all of it.
TEST(Spawn, NoSignalOfItsGroupReachesTheChildBeforeItsProgramRuns) {
  Pipe handled;
  const pid_t process = ::fork();
  if (process == 0) {
    static const int report = handled.write_end.get();
    ::setpgid(0, 0);
    handler_owner = ::getpid();
    ::signal(SIGINT, [](int) {
      if (::getpid() != handler_owner) [[maybe_unused]]
        const ssize_t written = ::write(report, "x", 1);
    });
    const pid_t other = start_to_signal(SIGINT);
    bool all_ended_well = true;
    for (int i = 0; i < 200; ++i) {
      Spawn child = shell("exit 0");
      child.group = Spawn::Group::inherit;
      all_ended_well &= wait_for_end(spawn(child)).ok();
    }
    ::kill(other, SIGKILL);
    ::_exit(all_ended_well ? 0 : 1);
  }
  EXPECT_EQ(handled.read_all(), "") << "the parent's handler ran in a child";
  EXPECT_TRUE(wait_for_end(process).ok());
}

TEST(Spawn, EndsTheChildWithItsParent) {
  Pipe pipe;
  const pid_t parent = ::fork();
  if (parent == 0) {
    Spawn child = shell("trap '' TERM; echo $$; exec sleep 600");
    child.output = pipe.write_end.get();
    child.death_signal = SIGKILL;
    spawn(child);
    ::pause();
  }
  pipe.write_end = FileDescriptor();
  char text[32] = {};
  ASSERT_GT(::read(pipe.read_end.get(), text, sizeof text - 1), 0);
  const pid_t child = std::stoi(text);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  EXPECT_TRUE(is_gone(child));
}

std::string name_of(pid_t process) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(process) + "/comm"), name);
  return name;
}

TEST(KillTree, EndsGrandchildrenThatLeftTheGroupAndIgnoreSignals) {
  const pid_t root =
      spawn(shell("for i in 1 2 3; do setsid sh -c 'trap \"\" TERM HUP; sleep 600 & wait' & done; wait"));
  ASSERT_TRUE(holds_soon([&] { return descendants_of(root).size() == 6; }));
  const auto tree = descendants_of(root);
  kill_tree(root);
  ::waitpid(root, nullptr, 0);
  for (pid_t process : tree) EXPECT_TRUE(is_gone(process));
}

TEST(KillTree, FindsOrphansByTheirMarkAndTouchesNobodyElse) {
  Spawn daemon = shell("setsid sleep 600 & exit 0"), bystander = shell("exec sleep 600");
  daemon.environment.push_back("DTRAIN_TEST_MARK=mine.5.of.it");
  bystander.environment.push_back("DTRAIN_TEST_MARK=mine.55.");
  const pid_t other = spawn(bystander), parent = spawn(daemon);
  ::waitpid(parent, nullptr, 0);
  // A process in the middle of execve(2) shows no environment: it is not found then.
  ASSERT_TRUE(holds_soon([] {
    const std::vector<pid_t> marked = processes_marked("DTRAIN_TEST_MARK=mine.5.");
    return marked.size() == 1 && name_of(marked[0]) == "sleep" &&
           processes_marked("DTRAIN_TEST_MARK=mine.5.") == marked;
  }));
  kill_marked("DTRAIN_TEST_MARK=mine.5.");
  EXPECT_TRUE(holds_soon([] { return processes_marked("DTRAIN_TEST_MARK=mine.5.").empty(); }));
  EXPECT_EQ(processes_marked("DTRAIN_TEST_MARK=mine.55."), std::vector<pid_t>{other});
  kill_tree(other);
  ::waitpid(other, nullptr, 0);
}

TEST(KillTree, OutrunsAProcessThatForksAllTheTime) {
  const std::string mark = "DTRAIN_TEST_MARK=fork " + std::to_string(::getpid());
  Spawn busy = shell("while :; do (sleep 600 &) ; sleep 0.01; done");
  busy.environment.push_back(mark);
  const pid_t root = spawn(busy);
  ASSERT_TRUE(holds_soon([&] { return processes_marked(mark).size() > 10; }));
  kill_tree(root, mark);
  ::waitpid(root, nullptr, 0);
  EXPECT_TRUE(holds_soon([&] { return processes_marked(mark).empty(); }));
}

TEST(OwnCommand, StartsThisProgramAgain) {
  Spawn again{.executable = own_command()[0], .arguments = own_command(), .environment = own_environment()};
  again.arguments.push_back("--gtest_list_tests");
  EXPECT_NE(output_of(again).find("StartsThisProgramAgain"), std::string::npos);
}

TEST(DescribeThreads, TellsAStoppedProcess) {
  const pid_t process = spawn(shell("kill -STOP $$"));
  ASSERT_TRUE(holds_soon([&] { return join(describe_threads(process), "\n").find("state T") != std::string::npos; }));
  kill_tree(process);
  ::waitpid(process, nullptr, 0);
}

TEST(StackDump, WritesEveryThreadAndGoesOn) {
  Pipe pipe;
  const pid_t process = ::fork();
  if (process == 0) {
    ::dup2(pipe.write_end.get(), 2);
    dump_stacks_on_signal();
    std::jthread second([] { std::this_thread::sleep_for(2s); }), third([] { std::this_thread::sleep_for(2s); });
    ::kill(::getpid(), stack_dump_signal());
    std::this_thread::sleep_for(1s);
    [[maybe_unused]] const auto written = ::write(2, "went on\n", 8);
    ::_exit(0);
  }
  const std::string text = pipe.read_all();
  ::waitpid(process, nullptr, 0);
  const auto count = split(text, '\n');
  EXPECT_EQ(std::count_if(count.begin(), count.end(), [](auto& line) { return line.starts_with("stack of"); }), 3)
      << text;
  EXPECT_NE(text.find("went on"), text.npos);
}

TEST(Spawn, SaysWhatAScriptWithoutAnInterpreterLacks) {
  const TemporaryFolder folder;
  const auto hint = [&](const char* content) {
    write_file_atomic(folder / "program", content, 0700);
    try {
      wait_for_end(spawn({.executable = folder / "program", .arguments = {"program"}}));
      return std::string("it was started");
    } catch (const Error& error) {
      return error.hint();
    }
  };
  EXPECT_NE(hint("echo here\n").find("#!/bin/sh"), std::string::npos);
  EXPECT_NE(hint("\177ELF\1").find("another kind of processor"), std::string::npos);
}

}  // namespace
}  // namespace dtrain
