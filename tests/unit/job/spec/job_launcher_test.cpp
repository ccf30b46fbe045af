#include <gtest/gtest.h>

#include <algorithm>

#include "common/temporary_folder.hpp"
#include "coordinator/client_side_starts.hpp"
#include "spec/job_launcher.hpp"

namespace dtrain::job {
namespace {

using namespace std::chrono_literals;
using Strings = std::vector<std::string>;

TEST(SubmittedEnvironment, HoldsWhatTheCommandNeedsAndNoCredentials) {
  const std::vector<std::string> own = {
      "PATH=/bin", "AWS_SECRET_ACCESS_KEY=s", "AWS_SESSION_TOKEN=t", "GITHUB_TOKEN=g", "DTRAIN_X=1", "LC_ALL=C"};
  EXPECT_EQ(submitted_environment(own, {"MINE=2"}),
            (std::vector<std::string>{"PATH=/bin", "LC_ALL=C", "DTRAIN_X=1", "MINE=2"}));
}

TEST(TravellingEnvironment, IsThatOfDtrainAndOfItsLibrariesAlone) {
  const Strings own = {"HOME=/root", "DTRAIN_X=1", "AWS_SECRET_ACCESS_KEY=s", "OMP_NUM_THREADS=2", "PATH=/bin"};
  EXPECT_EQ(travelling_environment(own, {}), (Strings{"DTRAIN_X=1", "OMP_NUM_THREADS=2"}));
}

TEST(TravellingEnvironment, WhatThePersonNamesComesTooAndWins) {
  EXPECT_EQ(travelling_environment({"DTRAIN_X=1"}, {"DTRAIN_X=two words", "MINE=\n"}),
            (Strings{"DTRAIN_X=two words", "MINE=\n"}));
}

TEST(TravellingEnvironment, HasNoConfigurationFileOfThisMachineUnlessItIsNamed) {
  const Strings own = {"DTRAIN_CONFIG=/etc/my.toml", "DTRAIN_CONFIGS=1", "DTRAIN_LR=0.1"};
  EXPECT_EQ(travelling_environment(own, {}), (Strings{"DTRAIN_CONFIGS=1", "DTRAIN_LR=0.1"}));
  EXPECT_EQ(travelling_environment(own, {"DTRAIN_CONFIG=/nfs/my.toml"}),
            (Strings{"DTRAIN_CONFIGS=1", "DTRAIN_LR=0.1", "DTRAIN_CONFIG=/nfs/my.toml"}));
}

TEST(EnvironmentOfStarter, HasNoConfigurationFileOfThisMachineAndNoKeys) {
  EXPECT_EQ(environment_of_starter(launcher::ProcessStarter::hydra,
                                   {"DTRAIN_CONFIG=/etc/my.toml", "AWS_SECRET_ACCESS_KEY=s", "PATH=/bin"}),
            Strings{"PATH=/bin"});
}

TEST(EnvironmentOfStarter, HasNoOptionsOfAStepForSrun) {
  const Strings own = {"PATH=/bin", "SLURM_NTASKS_PER_GPU=1", "SLURM_GPUS=4"};
  EXPECT_EQ(environment_of_starter(launcher::ProcessStarter::srun, own), Strings{"PATH=/bin"});
  EXPECT_EQ(environment_of_starter(launcher::ProcessStarter::qrsh, own), own);
}

TEST(SubmittedEnvironment, HoldsTheConfigurationFileOfTheCommandThatStartsAgain) {
  EXPECT_EQ(submitted_environment({"DTRAIN_CONFIG=/etc/my.toml", "DTRAIN_LR=0.1"}, {}),
            (Strings{"DTRAIN_CONFIG=/etc/my.toml", "DTRAIN_LR=0.1"}));
}

// The folder of the job is left out where it lies below the current one, by its name and where links lead.
TEST(TakeAlong, LeavesOutTheJobFolderAlone) {
  const TemporaryFolder real;
  const Path from = std::filesystem::canonical(real.path()), link = from / "link";
  std::filesystem::create_directories(from / "runs/job[1]");
  std::filesystem::create_directory_symlink(from / "runs/job[1]", link);
  std::filesystem::create_directory_symlink(from, from / "self");
  const auto paths = [&](const Path& job) {
    launcher::SshLauncherOptions ssh;
    take_along({.to = "/srv/copy", .from = from}, JobFolder{job}, ssh);
    EXPECT_EQ(ssh.not_copied.patterns, Strings{".git"});
    return ssh.not_copied.paths;
  };
  EXPECT_EQ(paths(from / "runs/job[1]"), (Strings{"runs/job[1]", "runs/job[1]"}));
  EXPECT_EQ(paths(from / "runs/job[1]/"), (Strings{"runs/job[1]", "runs/job[1]"}));
  EXPECT_EQ(paths(link), (Strings{"link", "runs/job[1]"}));
  EXPECT_EQ(paths(from / "self/runs/new"), (Strings{"self/runs/new", "runs/new"}));
  EXPECT_TRUE(paths("/").empty());
}

// Remembers what it was asked to start.
class Recorder final : public elastic::AgentLauncher {
 public:
  void start(const elastic::HostLine& host, const elastic::AgentOrder&, Failed) override {
    started.push_back(host.name);
  }
  Strings started;
};

class ClientSideStartsTest : public ::testing::Test {
 protected:
  // True when the request was the starts' alone; what was answered is in answers_.
  bool ask(Json body) {
    elastic::Request request{std::move(body), [this](Json answer) { answers_.push_back(std::move(answer)); }};
    const bool mine = starts_.hear(request, now_);
    if (!mine) request.answer(edited_);
    return mine;
  }
  void offer(const std::string& host) { ask(Json::object({{"ask", "edit-hosts"}, {"start", host}})); }
  void start(const std::string& host) {
    starts_.start({.name = host, .host = host}, {.address = "0.0.0.0", .port = 7, .token = "t", .host = host},
                  [this](const elastic::StartFailure& failure) {
                    failures_.push_back(failure.reason);
                    if (!failure.forget_key.empty()) failures_.push_back(failure.forget_key);
                  });
  }

  Recorder inner_;
  ClientSideStarts starts_{inner_};
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
  Json edited_ = Json::object({{"ok", true}});
  std::vector<Json> answers_;
  Strings failures_;
};

TEST_F(ClientSideStartsTest, AStartThatNobodyOfferedIsTheLaunchers) {
  start("a");
  EXPECT_EQ(inner_.started, Strings{"a"});
}

TEST_F(ClientSideStartsTest, WhoeverOfferedGetsTheJoinWithAnAddressThatCanBeReached) {
  offer("a");
  start("a");
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_TRUE(inner_.started.empty());
  EXPECT_NE(answers_[0].at("join").at("address").as_string(), "0.0.0.0");
  start("a");
  EXPECT_EQ(inner_.started, Strings{"a"});
}

TEST_F(ClientSideStartsTest, TheJoinComesWithWhatTheCoordinatorSaysOfTheEdit) {
  edited_["problems"] = Json::array({"it lacked w1"});
  offer("a");
  EXPECT_TRUE(answers_.empty());
  start("a");
  // The start may come from within the edit, before the coordinator has answered it.
  elastic::Request request{Json::object({{"ask", "edit-hosts"}, {"start", "b"}}),
                           [this](Json answer) { answers_.push_back(std::move(answer)); }};
  EXPECT_FALSE(starts_.hear(request, now_));
  start("b");
  request.answer(edited_);
  ASSERT_EQ(answers_.size(), 2u);
  for (const Json& answer : answers_) {
    EXPECT_TRUE(answer.find("join"));
    EXPECT_EQ(answer.at("problems").as_array().size(), 1u);
  }
  EXPECT_TRUE(inner_.started.empty());
}

TEST_F(ClientSideStartsTest, AnEditThatIsRefusedEndsTheOffer) {
  edited_ = Json::object({{"error", "no"}});
  offer("a");
  EXPECT_TRUE(answers_.at(0).find("error"));
  start("a");
  EXPECT_EQ(inner_.started, Strings{"a"});
}

TEST_F(ClientSideStartsTest, AnOfferThatIsNotNeededIsAnswered) {
  offer("a");
  starts_.tick(now_ + 1min);
  EXPECT_TRUE(answers_.at(0).at("ok").as_bool());
}

TEST_F(ClientSideStartsTest, AStartThatFailedOrNeverCameIsAFailureOfTheHost) {
  offer("a");
  offer("b");
  offer("c");
  for (const char* host : {"a", "b", "c"}) start(host);
  EXPECT_TRUE(
      ask(Json::object({{"ask", "start-failed"}, {"start", "a"}, {"reason", "no key"}, {"forget_key", "forget a"}})));
  starts_.joined("b");
  starts_.tick(std::chrono::steady_clock::now() + 1h);
  EXPECT_EQ(failures_, (Strings{"no key", "forget a", "the client that offered to start its agent did not"}));
}

}  // namespace
}  // namespace dtrain::job
