#include <gtest/gtest.h>
#include <sys/stat.h>

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
    launcher.start({.name = "h1", .host = "h1"}, order(), [this](std::string reason) { why.set_value(reason); });
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
  const WaitingHost host{"h1", WaitingState::in_job, 7, 1000, "boot 7"};
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
