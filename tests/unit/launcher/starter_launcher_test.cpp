#include <gtest/gtest.h>
#include <sys/stat.h>

#include <future>

#include <dtrain/base/process.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/launcher/starter_launcher.hpp>

#include "common/temporary_folder.hpp"
#include "world.hpp"

namespace dtrain::launcher {
namespace {

using namespace std::chrono_literals;

// A starter that is a script; its arguments are those of MPICH's mpirun.
struct Script {
  explicit Script(const std::string& text) {
    write_file_atomic(folder / "mpirun", "#!/bin/sh\n" + text, 0777);
    std::filesystem::create_directory(folder / "job");
  }
  StarterLauncherOptions options() const {
    return {.starter = ProcessStarter::hydra,
            .program = folder / "mpirun",
            .environment = {"PATH=/usr/bin:/bin", "SCRIPT_OF=" + folder.path().string()},
            .agent_command = {"agent"}};
  }
  elastic::AgentOrder join() const {
    return {.address = "127.0.0.1",
            .port = 7,
            .token = "secret",
            .host = "h1",
            .job_folder = (folder / "job").string(),
            .tree = "t"};
  }
  std::future<std::string> start(StarterLauncher& launcher) {
    launcher.start({.name = "h1", .host = "h1"}, join(),
                   [this](const elastic::StartFailure& failure) { why.set_value(failure.reason); });
    return why.get_future();
  }
  bool runs() const { return !processes_marked("SCRIPT_OF=" + folder.path().string()).empty(); }
  Path join_file() const { return folder / "job/join_t.json"; }

  TemporaryFolder folder;
  std::promise<std::string> why;
};

TEST(StarterLauncher, TellsTheAgentByAFileThatOnlyItsOwnerReads) {
  Script script("stat -c %a \"$7\" >$SCRIPT_OF/mode; cp \"$7\" $SCRIPT_OF/copy; echo \"$@\" >$SCRIPT_OF/words; exit 1");
  {
    StarterLauncher launcher(script.options());
    script.start(launcher).wait();
  }
  EXPECT_EQ(read_file(script.folder / "words"), "-hosts h1 -n 1 agent --join " + script.join_file().string() + "\n");
  EXPECT_EQ(read_file(script.folder / "mode"), "600\n");
  EXPECT_NE(read_file(script.folder / "copy").find("secret"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(script.join_file())) << "what nobody took is removed";
}

TEST(StarterLauncher, FindsAProgramByAPathThatHoldsInEveryFolder) {
  const Script script("exit 0");
  const Path relative = std::filesystem::relative(script.folder.path());
  const Path found = find_program("mpirun", "/no/such:" + relative.string(), "");
  EXPECT_TRUE(found.is_absolute()) << found;
  EXPECT_TRUE(std::filesystem::equivalent(found, script.folder / "mpirun"));
}

TEST(StarterLauncher, LeavesTheNameOfTheHostToTheCaller) {
  const Script script("exit 0");
  std::filesystem::remove(script.folder / "mpirun");
  StarterLauncher launcher(script.options());
  try {
    launcher.start({.name = "h1", .host = "h1"}, script.join(), [](const elastic::StartFailure&) {});
    FAIL() << "there is no such program";
  } catch (const RemoteError& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("its agent does not start: ")) << error.what();
  }
}

TEST(StarterLauncher, SaysWhyAnAgentDidNotStart) {
  Script script("echo noise; echo 'dtrain: h1: cannot join the job' >&2; exit 4");
  StarterLauncher launcher(script.options());
  EXPECT_EQ(script.start(launcher).get(), "mpirun ended with exit code 4: h1: cannot join the job");
}

TEST(StarterLauncher, GivesAStarterUpThatStartsNothing) {
  Script script("echo waiting; sleep 1000");
  StarterLauncherOptions options = script.options();
  options.start_deadline = 1s;
  StarterLauncher launcher(options);
  EXPECT_EQ(script.start(launcher).get(), "mpirun did not start its agent within 1 s: waiting");
  EXPECT_FALSE(std::filesystem::exists(script.join_file()));
  EXPECT_TRUE(holds_soon([&] { return !script.runs(); }));
}

TEST(StarterLauncher, EndsAStarterThatIgnoresEverythingWhenItEnds) {
  Script script("trap '' TERM HUP INT; echo ready >$SCRIPT_OF/ready; while :; do sleep 1; done");
  {
    StarterLauncher launcher(script.options());
    script.start(launcher);
    ASSERT_TRUE(holds_soon([&] { return std::filesystem::exists(script.folder / "ready"); }));
  }
  EXPECT_FALSE(script.runs());
}

TEST(StarterLauncher, LeavesAgentsToTheCoordinatorThatTookOver) {
  Script script("rm \"$7\"; echo ready >$SCRIPT_OF/ready; exec sleep 1000");
  {
    StarterLauncherOptions options = script.options();
    options.job_goes_on = [] { return true; };
    StarterLauncher launcher(options);
    script.start(launcher);
    ASSERT_TRUE(holds_soon([&] { return std::filesystem::exists(script.folder / "ready"); }));
  }
  EXPECT_TRUE(script.runs());
  kill_marked("SCRIPT_OF=" + script.folder.path().string());
}

}  // namespace
}  // namespace dtrain::launcher
