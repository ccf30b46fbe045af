#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <future>
#include <thread>

#include <dtrain/base/process.hpp>
#include <dtrain/launcher/folder_launcher.hpp>
#include <dtrain/launcher/waiting_agents.hpp>

#include "common/temporary_folder.hpp"
#include "world.hpp"

namespace dtrain::launcher {
namespace {

using namespace std::chrono_literals;

// A coordinator and a host that share a folder. The host's agents are a script, whose only argument is the order.
struct Pair {
  explicit Pair(const std::string& script = "rm $1") {
    write_file_atomic(folder / "agent", "#!/bin/sh\n" + script, 0777);
    std::filesystem::create_directory(folder / "job");
  }
  elastic::AgentOrder order(const std::string& tree = "t1") const {
    return {.address = "127.0.0.1",
            .port = 7,
            .token = "secret",
            .host = "h1",
            .job_folder = (folder / "job").string(),
            .tree = tree};
  }
  std::future<std::string> start(FolderLauncher& launcher) {
    launcher.start({.name = "h1", .host = "h1"}, order(),
                   [this](const elastic::StartFailure& failure) { why.set_value(failure.reason); });
    return why.get_future();
  }
  WaitingAgents agents() {
    return {files, "h1", [this](const std::string& line) { notes.push_back(line); }, {(folder / "agent").string()}};
  }

  TemporaryFolder folder;
  WaitingFolder files{folder / "job"};
  std::promise<std::string> why;
  std::vector<std::string> notes;
};

TEST(WaitingFolder, FindsHostsAndTheirOrders) {
  const Pair pair;
  const WaitingHost host{"h1", WaitingState::in_job, 7, 1000, "boot 7", "machine-1"};
  pair.files.renew(host);
  pair.files.renew({"h1.example", WaitingState::waiting, 8, 1000});
  EXPECT_EQ(pair.files.find("h1"), host);
  EXPECT_EQ(pair.files.find("h2"), std::nullopt);
  EXPECT_EQ(pair.files.hosts().size(), 2u);
  const Path order = pair.files.give("h1", pair.order());
  pair.files.give("h1.example", pair.order());
  EXPECT_EQ(pair.files.orders_for("h1"), std::vector<Path>{order});
  pair.files.forget("h1");
  EXPECT_EQ(pair.files.find("h1"), std::nullopt);
  EXPECT_TRUE(pair.files.orders_for("h1").empty());
  EXPECT_EQ(pair.files.orders_for("h1.example").size(), 1u);
}

TEST(WaitingFolder, LeavesADamagedFileOut) {
  const Pair pair;
  pair.files.renew({"h1", WaitingState::waiting, 7, 1000});
  write_file_atomic(pair.folder / "job/waiting/h1.json", "{\"host\":");
  EXPECT_EQ(pair.files.find("h1"), std::nullopt);
  EXPECT_TRUE(pair.files.hosts().empty());
}

TEST(WaitingFolder, IsItsOwnersAlone) {
  const Pair pair;
  pair.files.renew({"h1", WaitingState::waiting, 7, 1000});
  EXPECT_EQ(std::filesystem::status(pair.folder / "job/waiting").permissions(), std::filesystem::perms::owner_all);
}

// The coordinator would write the order for such a host elsewhere.
TEST(WaitingFolder, LeavesAHostOutWhoseFileHasAnotherName) {
  const Pair pair;
  pair.files.renew({"h1", WaitingState::waiting, 7, 1000});
  const std::string text = read_file(pair.folder / "job/waiting/h1.json");
  std::string moved = text;
  moved.replace(moved.find("\"h1\""), 4, "\"../../h1\"");
  ASSERT_NE(moved, text);
  write_file_atomic(pair.folder / "job/waiting/h1.json", moved);
  EXPECT_TRUE(pair.files.hosts().empty());
}

TEST(FolderLauncher, GivesAnOrderThatOnlyItsOwnerReads) {
  Pair pair("stat -c %a $1 >$1.mode; cp $1 $1.copy; rm $1");
  FolderLauncher launcher({.job_folder = pair.folder / "job"});
  pair.start(launcher);
  const Path order = pair.files.orders_for("h1").at(0);
  WaitingAgents agents = pair.agents();
  EXPECT_TRUE(holds_soon([&] { return agents.look(), !std::filesystem::exists(order); }));
  EXPECT_EQ(read_file(order.string() + ".mode"), "600\n");
  EXPECT_NE(read_file(order.string() + ".copy").find("secret"), std::string::npos);
}

TEST(FolderLauncher, SaysThatNoHostTookTheOrder) {
  Pair pair;
  FolderLauncher launcher({.job_folder = pair.folder / "job", .take_deadline = 1s});
  EXPECT_EQ(pair.start(launcher).get(), "h1 did not take its order within 1 s: no `dtrain hosts join` waits there");
  EXPECT_TRUE(pair.files.orders_for("h1").empty());
}

TEST(FolderLauncher, SaysWhyAnAgentEnded) {
  Pair pair("echo 'dtrain: h1: cannot join the job' >&2; rm $1; exit 4");
  FolderLauncher launcher({.job_folder = pair.folder / "job"});
  std::future<std::string> why = pair.start(launcher);
  WaitingAgents agents = pair.agents();
  EXPECT_TRUE(holds_soon([&] { return agents.look(), why.wait_for(0s) == std::future_status::ready; }));
  EXPECT_EQ(why.get(), "its agent ended with exit code 4: h1: cannot join the job");
}

TEST(FolderLauncher, SaysWhyAnAgentDidNotStart) {
  Pair pair;
  std::filesystem::remove(pair.folder / "agent");
  FolderLauncher launcher({.job_folder = pair.folder / "job"});
  std::future<std::string> why = pair.start(launcher);
  WaitingAgents agents = pair.agents();
  agents.look();
  EXPECT_FALSE(agents.any());
  EXPECT_TRUE(why.get().starts_with("its agent does not start: "));
  EXPECT_TRUE(pair.files.orders_for("h1").empty());
}

TEST(FolderLauncher, TakesOrdersBackWhenItEnds) {
  Pair pair;
  {
    FolderLauncher launcher({.job_folder = pair.folder / "job"});
    pair.start(launcher);
    EXPECT_EQ(pair.files.orders_for("h1").size(), 1u);
  }
  EXPECT_TRUE(pair.files.orders_for("h1").empty());
}

TEST(WaitingAgents, EndAnAgentThatIsReplaced) {
  Pair pair("rm $1; exec sleep 1000");
  WaitingAgents agents = pair.agents();
  pair.files.give("h1", pair.order("t1"));
  EXPECT_TRUE(holds_soon([&] { return agents.look(), agents.any() && pair.files.orders_for("h1").empty(); }));
  pair.files.give("h1", pair.order("t2"));
  EXPECT_TRUE(holds_soon([&] {
    agents.look();
    return std::ranges::any_of(pair.notes, [](const auto& note) { return note.find("signal 9") != note.npos; });
  }));
  EXPECT_TRUE(agents.any()) << "the one of the second order";
}

TEST(WaitingAgents, RefuseAnOrderThatAnotherUserMayHaveWritten) {
  Pair pair("touch $1.begun; rm $1");
  WaitingAgents agents = pair.agents();
  const Path order = pair.files.give("h1", pair.order("t1"));
  ASSERT_EQ(::chmod(order.c_str(), 0660), 0);
  agents.look();
  EXPECT_FALSE(agents.any());
  ASSERT_EQ(pair.notes.size(), 1u);
  EXPECT_NE(pair.notes[0].find("other users may write it"), std::string::npos) << pair.notes[0];
  EXPECT_NE(read_file(WaitingFolder::end_of(order)).find("other users may write it"), std::string::npos);
  std::filesystem::remove(order);
  std::filesystem::create_symlink(pair.folder / "agent", order);
  WaitingAgents again = pair.agents();
  again.look();
  EXPECT_FALSE(again.any());
}

TEST(WaitingAgents, ObeyTheirOwnCoordinatorBesideAForeignOrder) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  Pair pair("rm $1; exec sleep 1000");
  const Path own = pair.files.give("h1", pair.order("t1")), foreign = pair.files.give("h1", pair.order("t2"));
  ASSERT_EQ(::chown(foreign.c_str(), 4711, 4711), 0);
  const auto later = std::filesystem::last_write_time(own) + 1h;
  std::filesystem::last_write_time(foreign, later);  // it does not hide the older one
  WaitingAgents agents = pair.agents();
  EXPECT_TRUE(holds_soon([&] { return agents.look(), !std::filesystem::exists(own); }));
  EXPECT_TRUE(agents.any() && std::filesystem::exists(foreign));
  EXPECT_NE(pair.notes.at(0).find("it belongs to 4711"), std::string::npos) << pair.notes.at(0);
}

TEST(WaitingAgents, TakeNoOrderWhenTheHostLeaves) {
  Pair pair;
  WaitingAgents agents = pair.agents();
  agents.refuse_orders();
  pair.files.give("h1", pair.order());
  agents.look();
  EXPECT_FALSE(agents.any());
}

}  // namespace
}  // namespace dtrain::launcher
