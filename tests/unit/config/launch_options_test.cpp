#include "launch_options.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/set_variable.hpp"

namespace dtrain::config {
namespace {

TEST(LaunchOptions, NameTheVariableThatHidesTheGpus) {
  const SetVariable hidden("CUDA_VISIBLE_DEVICES", "-1");
  LaunchOptions options;
  OptionSet set;
  bind(set, options);
  options.words = {"true"};
  options.ranks_per_host = "gpu";
  try {
    settled(options, set);
    FAIL() << "no GPU is visible";
  } catch (const UsageError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("CUDA_VISIBLE_DEVICES is \"-1\""), text.npos) << text;
  }
}

// Options for pods with values from a command line.
struct PodOptions {
  PodOptions() {
    bind(set, options);
    options.words = {"true"};
    options.job.launcher = Launcher::kubernetes;
    options.job.kubernetes.image = "dtrain:1";
  }
  void give(const char* name, const char* text, Source source = Source::flag) {
    Option& option = *set.find(name);
    option.set(text);
    option.source = source;
    if (source == Source::flag) option.given = text;
  }
  LaunchOptions options;
  OptionSet set;
};

TEST(LaunchOptionsForPods, CountTheHostsOfTorchrun) {
  PodOptions pods;
  pods.give("num-workers", "2", Source::environment);
  pods.give("nnodes", "3");
  pods.set.settle();
  EXPECT_EQ(settled_for_pods(pods.options, pods.set).job.hosts, 3);
  EXPECT_EQ(pods.set.find("num-workers")->origin, "--nnodes");
  EXPECT_FALSE(pods.set.chosen("nnodes")) << "a pod takes one of the two";
  pods.give("nnodes", "3");
  EXPECT_THROW(pods.set.settle(), UsageError) << "both are flags";
  PodOptions range;
  range.give("nnodes", "1:4");
  EXPECT_THROW(range.set.settle(), UsageError);
}

TEST(LaunchOptions, TheLogDirOfAFlagBeatsAJobDirOfAVariable) {
  PodOptions pods;
  Option& job_dir = *pods.set.find("job-dir");
  pods.give("job-dir", "theirs", Source::environment);
  pods.give("log-dir", "mine");
  pods.set.settle();
  EXPECT_EQ(pods.options.job.folder, Path("mine"));
  EXPECT_EQ(job_dir.origin, "--log-dir");
  pods.give("job-dir", "named");
  pods.set.settle();
  EXPECT_EQ(pods.options.job.folder, Path("named"));
}

TEST(LaunchOptionsForPods, CountTheProcessorsAndGpusOfAPod) {
  struct PodRanks {
    const char* word;
    double cpus;
    int gpus;
    const char* ranks;
  };
  for (const PodRanks& one : {PodRanks{"3", 2, 0, "3"}, PodRanks{"cpu", 1.5, 4, "2"}, PodRanks{"gpu", 2, 4, "4"},
                              PodRanks{"auto", 0.1, 0, "1"}, PodRanks{"auto", 8, 4, "4"}}) {
    PodOptions pods;
    pods.give("nproc-per-host", one.word);
    pods.options.job.kubernetes.cpus = one.cpus;
    pods.options.job.kubernetes.gpus = one.gpus;
    EXPECT_EQ(settled_for_pods(pods.options, pods.set).ranks_per_host, one.ranks) << one.word;
  }
}

TEST(LaunchOptionsForPods, RefuseWhatThePodsWouldRefuse) {
  for (const auto& [name, text] :
       {std::pair("stop-signal", "FOO"), std::pair("save-signal", "FOO"), std::pair("redirects", "7"),
        std::pair("nproc-per-host", "0"), std::pair("nproc-per-host", "gpu"), std::pair("standalone", "true"),
        std::pair("priority", "5"), std::pair("retries", "2"), std::pair("down-when-done", "true"),
        std::pair("job-queue", "q")}) {
    PodOptions pods;
    EXPECT_NO_THROW(settled_for_pods(pods.options, pods.set));
    pods.give(name, text);
    EXPECT_THROW(settled_for_pods(pods.options, pods.set), UsageError) << name;
  }
  PodOptions without_command;
  without_command.options.words.clear();
  EXPECT_THROW(settled_for_pods(without_command.options, without_command.set), UsageError);
}

TEST(LaunchOptionsForPods, SavingTakesTimeOnlyWithItsSignal) {
  LaunchOptions options;
  options.grace = Seconds(7);
  options.save_timeout = Seconds(50);
  EXPECT_EQ(time_to_end(options), Seconds(7));
  options.save_signal = "USR1";
  EXPECT_EQ(time_to_end(options), Seconds(57));
}

}  // namespace
}  // namespace dtrain::config
