#include "security.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"
#include "job/spec/process_facts.hpp"
#include "proc_net.hpp"

namespace dtrain::doctor {
namespace {

constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 0 100 0 0 10 0\n"
    "   1: 0A01A8C0:8000 0B01A8C0:0FA0 01 00000000:00000000 00:00000000 00000000  1000        0 78 1 0 20 4 30 10 -1\n"
    "   2: damaged\n"
    "   3: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 79 1\n"
    "   4: 0000000000000000FFFF00000100007F:0017 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 80 1\n";

TEST(ProcNet, ReadsAddressesStatesAndInodes) {
  const std::vector<TcpSocket> sockets = parse_tcp_table(kTable);
  ASSERT_EQ(sockets.size(), 4u);
  EXPECT_EQ(sockets[0].address, "127.0.0.1");
  EXPECT_EQ(sockets[0].port, 8080);
  EXPECT_TRUE(sockets[0].listens);
  EXPECT_EQ(sockets[0].inode, 77u);
  EXPECT_EQ(sockets[1].peer, "192.168.1.11");
  EXPECT_EQ(sockets[1].peer_port, 4000);
  EXPECT_FALSE(sockets[1].listens);
  EXPECT_EQ(sockets[2].address, "::");
  EXPECT_EQ(sockets[3].address, "127.0.0.1");
}

TEST(ProcNet, FindsUnixListenersWithNames) {
  const auto listeners = parse_unix_table(
      "Num       RefCount Protocol Flags    Type St Inode Path\n"
      "0000: 00000003 00000000 00000000 0001 03  1073\n"
      "0000: 00000002 00000000 00010000 0001 01  1074 @dtrain-data 127.0.0.1 4000\n"
      "0000: 00000002 00000000 00010000 0001 01  1075 /run/a socket\n"
      "0000: 00000003 00000000 00000000 0001 03  1076 /run/connected\n");
  ASSERT_EQ(listeners.size(), 2u);
  EXPECT_EQ(listeners[0].name, "@dtrain-data 127.0.0.1 4000");
  EXPECT_EQ(listeners[0].inode, 1074u);
  EXPECT_EQ(listeners[1].name, "/run/a socket");
}

TEST(Security, TellsProcessesByTheirCommandLine) {
  EXPECT_EQ(role_of({"dtrain", "agent", "--apart"}), "agent");
  EXPECT_EQ(role_of({"lib/ld-linux-x86-64.so.2", "--library-path", "lib", "bin/dtrain", "agent", "--worker"}),
            "worker");
  EXPECT_EQ(role_of({"python3", "agent", "--worker"}), "program");
  EXPECT_EQ(role_of({}), "program");
}

PortFacts port_of(const std::string& role, const std::string& address = "10.0.0.1") {
  return {.process = 7, .role = role, .use = {}, .address = address, .port = 4000};
}

TEST(Security, KnowsWhatGuardsAPort) {
  const job::CoordinatorFile tls{.data = "tls"}, plain{.data = "plain"}, gloo{.data = "gloo"},
      program{.data = "tls", .runs_program = true};
  const std::vector<std::string> near = {"@dtrain-data 10.0.0.1 4000"};
  EXPECT_EQ(classify_port(port_of("coordinator"), {}, gloo).guard, Guard::tls);
  EXPECT_EQ(classify_port(port_of("agent"), {}, plain).guard, Guard::tls);
  EXPECT_EQ(classify_port(port_of("worker"), near, tls).guard, Guard::tls);
  EXPECT_EQ(classify_port(port_of("worker"), near, plain).guard, Guard::handshake);
  EXPECT_EQ(classify_port(port_of("worker"), near, gloo).guard, Guard::tls);
  EXPECT_EQ(classify_port(port_of("worker"), {}, gloo).guard, Guard::none);
  EXPECT_EQ(classify_port(port_of("worker"), {}, program).use, "rendezvous");
  EXPECT_EQ(classify_port(port_of("program"), {}, program).guard, Guard::none);
}

SecurityFacts good_job() {
  SecurityFacts facts;
  facts.folder = "/job";
  facts.coordinator = {.host = "h1", .data = "tls"};
  facts.ports = {
      {.process = 7, .role = "coordinator", .use = "control", .address = "0.0.0.0", .port = 1, .guard = Guard::tls}};
  facts.files = {{.path = "/job", .use = "job folder", .folder = true, .mode = 0755, .owner = "ann", .group = "staff"},
                 {.path = "/job/coordinator.json",
                  .use = "coordinator",
                  .kind = FileFacts::Kind::secret,
                  .mode = 0600,
                  .owner = "ann",
                  .group = "staff"}};
  return facts;
}

Level worst_of(const std::vector<Finding>& findings) {
  Level worst = Level::fine;
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.level == Level::fine, finding.why.empty()) << finding.what;
    EXPECT_EQ(finding.level == Level::fine, finding.fix.empty()) << finding.what;
    worst = std::max(worst, finding.level);
  }
  return worst;
}

TEST(Security, AJobAsItIsMadeIsFine) {
  const SecurityFacts facts = good_job();
  EXPECT_EQ(worst_of(judge_ports(facts)), Level::fine);
  EXPECT_EQ(worst_of(judge_files(facts)), Level::fine);
  EXPECT_EQ(worst_of(judge_choices(facts)), Level::fine);
}

TEST(Security, ATokenThatOthersCanReadIsAProblem) {
  for (const unsigned mode : {0640u, 0604u}) {
    SecurityFacts facts = good_job();
    facts.files[1].mode = mode;
    const std::vector<Finding> found = judge_files(facts);
    EXPECT_EQ(worst_of(found), Level::problem);
    EXPECT_NE(found[1].fix.find("chmod 600 /job/coordinator.json"), std::string::npos);
  }
  SecurityFacts facts = good_job();
  facts.files[1].mode = 0640;
  facts.files[1].group = "ann";  // a group of this user alone
  EXPECT_EQ(worst_of(judge_files(facts)), Level::fine);
}

TEST(Security, WhatEveryUserMayChangeIsAProblem) {
  SecurityFacts facts = good_job();
  facts.files[0].mode = 0777;
  EXPECT_EQ(worst_of(judge_files(facts)), Level::problem);
  facts.files[0].mode = 01777;
  EXPECT_EQ(worst_of(judge_files(facts)), Level::fine);
  facts.files[0].mode = 0775;
  EXPECT_EQ(worst_of(judge_files(facts)), Level::warning);
  facts.files[0].mode = 0755;
  facts.files.push_back({.path = "/job/known_hosts", .use = "host keys", .mode = 0644, .owner = "bob", .group = "bob"});
  EXPECT_EQ(worst_of(judge_files(facts)), Level::warning);
}

// The finding for the file; the test fails where there is none.
Finding finding_for(const SecurityFacts& facts, const Path& file) {
  const std::vector<Finding> found = judge_files(facts);
  const auto one = std::ranges::find_if(
      found, [&](const Finding& finding) { return finding.what.starts_with(file.string() + " ("); });
  EXPECT_NE(one, found.end()) << file;
  return one == found.end() ? Finding{} : *one;
}

TEST(Security, OrdersForWaitingHostsAreLookedAtBeforeTheFirstJob) {
  const TemporaryFolder folder;
  EXPECT_THROW(read_security({folder.path()}), UsageError);
  std::filesystem::create_directory(folder / "waiting");
  write_file_atomic(folder / "waiting/h1+t1.order", "{}", 0600);
  write_file_atomic(folder / "waiting/h1.json", "{}", 0644);
  std::filesystem::permissions(folder / "waiting", std::filesystem::perms(0777));
  SecurityFacts facts = read_security({folder.path()});
  EXPECT_FALSE(facts.has_job);
  EXPECT_EQ(worst_of(judge_ports(facts)), Level::fine);
  EXPECT_TRUE(judge_choices(facts).empty());
  EXPECT_EQ(finding_for(facts, folder / "waiting").level, Level::problem);
  std::filesystem::permissions(folder / "waiting", std::filesystem::perms(0700));
  EXPECT_EQ(worst_of(judge_files(read_security({folder.path()}))), Level::fine);
  std::filesystem::permissions(folder / "waiting/h1+t1.order", std::filesystem::perms(0604));
  facts = read_security({folder.path()});
  EXPECT_NE(finding_for(facts, folder / "waiting/h1+t1.order").why.find("token"), std::string::npos);
}

TEST(Security, AQueueIsLookedAtAsAWholeAndFromItsJobs) {
  const TemporaryFolder folder;
  const Path job = folder / "0001";
  std::filesystem::create_directory(job);
  write_file_atomic(job / "spec.json", "{}", 0644);
  for (const Path& chosen : {folder.path(), job}) {
    if (chosen == job)
      write_file_atomic(job / "coordinator.json", R"({"pid": 1, "host": "h", "addresses": [],
                                         "port": 1, "ended": "done"})",
                        0600);
    const Finding finding = finding_for(read_security({chosen}), job / "spec.json");
    EXPECT_EQ(finding.level, Level::problem);
    EXPECT_NE(finding.why.find("environment"), std::string::npos) << finding.why;
    EXPECT_EQ(finding.fix, "chmod 600 " + (job / "spec.json").string());
  }
  EXPECT_EQ(read_security({job}).has_job, true);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0777));
  EXPECT_EQ(finding_for(read_security({job}), folder.path()).level, Level::problem);
}

TEST(Security, LogsAreSummedUpByWhatIsWrongWithThem) {
  SecurityFacts facts = good_job();
  for (const char* name : {"/job/logs/a", "/job/logs/b", "/job/logs/c"})
    facts.files.push_back({.path = name, .use = "logs", .mode = 0644, .owner = "ann", .group = "staff"});
  const std::vector<Finding> found = judge_files(facts);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[2].level, Level::note);
  EXPECT_NE(found[2].what.find("and 2 more"), std::string::npos);
  EXPECT_EQ(found[2].fix, "chmod go-r /job/logs/a /job/logs/b /job/logs/c");
}

TEST(Security, FixesCanBePasted) {
  SecurityFacts facts = good_job();
  facts.files[0] = {.path = "/my job", .use = "job folder", .folder = true, .mode = 0777, .owner = "ann", .group = "a"};
  EXPECT_EQ(judge_files(facts)[0].fix, "chmod o-w '/my job'");
  facts.files[0].mode = 0755;
  for (const char* name : {"/my job/a", "/my job/b"})
    facts.files.push_back({.path = name, .use = "logs", .mode = 0644, .owner = "ann", .group = "staff"});
  EXPECT_EQ(judge_files(facts)[2].fix, "chmod go-r '/my job/a' '/my job/b'");
  facts.files.push_back({.path = "/my job/c", .use = "host keys", .mode = 0644, .owner = "bob", .group = "bob"});
  EXPECT_EQ(judge_files(facts)[3].fix, "chown ann '/my job/c'");
  facts.folder = "/my job";
  facts.ports.clear();
  EXPECT_EQ(judge_ports(facts).back().fix,
            "dtrain run -H '/my job/host_worker' -- dtrain doctor security --job-dir '/my job'");
}

// The job was started in another folder than this process.
TEST(Security, CheckpointsAreLookedForWhereTheJobWasStarted) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "work/m");
  const job::JobFolder job{folder / "job"};
  std::filesystem::create_directory(job.path);
  job::write_coordinator(job, {.started_in = folder / "work", .ended = "done"});
  write_file_atomic(job.latest(), "m/a-0001.json", 0600);
  const Path weights = folder / "work/m/a-0001.safetensors";
  write_file_atomic(folder / "work/m/a-0001.json", "{}", 0600);
  write_file_atomic(weights, "", 0600);
  std::filesystem::permissions(weights, std::filesystem::perms(0602));
  SecurityFacts facts = read_security(job);
  EXPECT_TRUE(facts.unfound.empty());
  EXPECT_EQ(finding_for(facts, weights).fix, "chmod o-w " + weights.string());
  std::filesystem::remove(weights);
  facts = read_security(job);
  EXPECT_EQ(facts.unfound, std::vector<std::string>{weights.string()});
  EXPECT_EQ(finding_for(facts, weights).level, Level::note);
  write_file_atomic(job.latest(), "s3://bucket/m/a-0001.json", 0600);
  EXPECT_TRUE(read_security(job).unfound.empty());
}

// Its sockets are hidden from everyone, and gone.
TEST(Security, AProcessThatEndedIsNotAnotherUsers) {
  const TemporaryFolder folder;
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  siginfo_t end{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(ended), &end, WEXITED | WNOWAIT), 0);
  job::write_coordinator({folder.path()}, {.pid = ended, .host = job::host_name()});
  EXPECT_TRUE(read_security({folder.path()}).unseen.empty());
  ::waitpid(ended, nullptr, 0);
}

TEST(Security, AnOpenPortIsWorseWhereOthersReachIt) {
  SecurityFacts facts = good_job();
  facts.ports[0] = {.process = 8, .role = "program", .use = "own", .address = "127.0.0.1", .port = 9};
  EXPECT_EQ(worst_of(judge_ports(facts)), Level::note);
  facts.ports[0].address = "::";
  EXPECT_EQ(worst_of(judge_ports(facts)), Level::warning);
  facts.ports.clear();
  EXPECT_EQ(worst_of(judge_ports(facts)), Level::note);  // nothing runs here
  facts.coordinator.ended = "done";
  EXPECT_EQ(worst_of(judge_ports(facts)), Level::fine);
  facts.unseen = {9};
  EXPECT_EQ(worst_of(judge_ports(facts)), Level::warning);
}

TEST(Security, ChoicesWithoutProtectionAreNamed) {
  for (const char* data : {"plain", "gloo", "nccl"}) {
    SecurityFacts facts = good_job();
    facts.coordinator.data = data;
    EXPECT_EQ(worst_of(judge_choices(facts)), Level::warning) << data;
  }
  SecurityFacts facts = good_job();
  facts.coordinator.runs_program = true;
  EXPECT_EQ(worst_of(judge_choices(facts)), Level::note);
  facts.coordinator.data.clear();
  EXPECT_EQ(worst_of(judge_choices(facts)), Level::note);
}

}  // namespace
}  // namespace dtrain::doctor
