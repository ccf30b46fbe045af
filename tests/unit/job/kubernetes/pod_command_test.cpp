#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "config/launch_options.hpp"
#include "config/train_options.hpp"
#include "job/kubernetes/pod_command.hpp"

namespace dtrain::job {
namespace {

// Options with values from a command line, or another source.
template <typename Options>
struct Chosen {
  Chosen() { bind(set, options); }
  void choose(const char* name, const std::string& text, config::Source source = config::Source::flag) {
    config::Option& option = *set.find(name);
    option.set(text);
    option.source = source;
    if (source == config::Source::flag) option.given = text;
  }
  Options options;
  config::OptionSet set;
};

std::string pods(const std::string& path) { return (Path(config::kPodFolder) / path).string(); }

std::string command_of(const Chosen<config::TrainOptions>& chosen) {
  return join(pod_command("train", chosen.options.job, chosen.set, {}), " ");
}

TEST(PodCommand, HasWhatTheUserChoseWhereverItStood) {
  Chosen<config::TrainOptions> chosen;
  chosen.choose("launcher", "kubernetes");
  chosen.choose("kube-image", "dtrain:1");
  chosen.choose("num-workers", "2");
  chosen.choose("elastic", "true");
  chosen.choose("lr", "0.5", config::Source::environment);
  chosen.choose("network", "mlp", config::Source::user_config);
  chosen.choose("wd", "0.1", config::Source::recipe);
  EXPECT_EQ(command_of(chosen), "train --network mlp --lr 0.5 --num-workers 2 --elastic --launcher folder --job-dir " +
                                    pods("jobs/dtrain"));
}

TEST(PodCommand, ResumesWhereThereAreCheckpoints) {
  Chosen<config::TrainOptions> chosen;
  chosen.choose("model-prefix", "m/x");
  chosen.choose("job-dir", "j");
  EXPECT_EQ(command_of(chosen), "train --model-prefix m/x --launcher folder --job-dir " + pods("j") + " --resume");
  chosen.choose("job-dir", pods("else"));
  EXPECT_EQ(command_of(chosen), "train --model-prefix m/x --launcher folder --job-dir " + pods("else") + " --resume");
}

TEST(PodCommand, KeepsTheWordsOfAProgram) {
  Chosen<config::LaunchOptions> chosen;
  chosen.choose("env", "A=1 2");
  const std::vector<std::string> words =
      pod_command("launch", chosen.options.job, chosen.set, {"python3", "a b.py", "--lr", "1"});
  EXPECT_EQ(words, (std::vector<std::string>{"launch", "--env", "A", "--launcher", "folder", "--job-dir",
                                             pods("jobs/dtrain"), "--", "python3", "a b.py", "--lr", "1"}));
}

TEST(PodCommand, HasNoValuesOfVariablesButThoseThatWouldChangeTheCoordinator) {
  Chosen<config::TrainOptions> chosen;
  chosen.choose("env", "API_TOKEN=5ecret");
  EXPECT_EQ(command_of(chosen), "train --env API_TOKEN --launcher folder --job-dir " + pods("jobs/dtrain"));
  chosen.choose("env", "LD_PRELOAD=a.so");
  EXPECT_EQ(command_of(chosen), "train --env LD_PRELOAD=a.so --launcher folder --job-dir " + pods("jobs/dtrain"));
}

TEST(PodCommand, LeavesOutWhatOnlyConcernsThisMachineOrAnotherLauncher) {
  Chosen<config::LaunchOptions> chosen;
  for (const auto& [name, text] : {std::pair("queue", "gpu"), std::pair("sge-pe", "mpi"), std::pair("yarn-cores", "2"),
                                   std::pair("sync-binary", "0"), std::pair("announce", "10.0.0.7"),
                                   std::pair("priority", "4"), std::pair("retries", "2"), std::pair("job-queue", "q")})
    chosen.choose(name, text, config::Source::environment);
  EXPECT_EQ(join(pod_command("launch", chosen.options.job, chosen.set, {"true"}), " "),
            "launch --launcher folder --job-dir " + pods("jobs/dtrain") + " -- true");
}

TEST(PodCommand, HasTheJobFolderOnTheVolume) {
  for (const std::string& path : {std::string("j"), std::string("a/../j"), pods("j"), pods("../work/j")}) {
    Chosen<config::TrainOptions> chosen;
    chosen.choose("job-dir", path);
    EXPECT_EQ(pod_job_folder(chosen.options.job, chosen.set), pods("j")) << path;
  }
  for (const std::string& path : {std::string("../x"), std::string("/efs/x"), std::string("/worker"), pods("../x")}) {
    Chosen<config::TrainOptions> chosen;
    chosen.choose("job-dir", path);
    EXPECT_THROW(pod_job_folder(chosen.options.job, chosen.set), UsageError) << path;
  }
}

TEST(PodCommand, RefusesWhatLooksAtOneProcess) {
  for (const auto& [name, text] : {std::pair("dry-run", "true"), std::pair("test-io", "1")}) {
    Chosen<config::TrainOptions> chosen;
    chosen.choose(name, text);
    EXPECT_THROW(command_of(chosen), UsageError) << name;
  }
  Chosen<config::TrainOptions> chosen;
  chosen.choose("test-io", "0");
  EXPECT_NO_THROW(command_of(chosen));
}

TEST(PodCommand, RefusesWordsThatTheManifestCannotHold) {
  Chosen<config::TrainOptions> chosen;
  EXPECT_NO_THROW(pod_command("launch", chosen.options.job, chosen.set, {"é\u2028"}));
  EXPECT_THROW(pod_command("launch", chosen.options.job, chosen.set, {"python3", "caf\xe9.py"}), UsageError);
  EXPECT_EQ(variables_of_secret({"A=é"}), std::vector<std::string>{"A=é"});
  EXPECT_THROW(variables_of_secret({"A=caf\xe9"}), UsageError);
}

}  // namespace
}  // namespace dtrain::job
