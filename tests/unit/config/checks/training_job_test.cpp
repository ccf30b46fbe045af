#include "config/checks/training_job.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include <dtrain/base/error.hpp>

#include "config/train_options.hpp"

namespace dtrain::config {
namespace {

// A training with these options, from one source.
struct Training {
  TrainOptions options;
  OptionSet set;
  Training(const std::vector<std::pair<const char*, const char*>>& given, Source source) {
    bind(set, options);
    for (const auto& [name, text] : given) {
      Option& option = *set.find(name);
      option.set(text);
      option.source = source;
    }
  }
};

std::string idle(const std::vector<std::pair<const char*, const char*>>& given, Source source = Source::flag) {
  const Training training(given, source);
  return idle_without_job(training.options.job, training.set);
}

std::string refusal(const std::vector<std::pair<const char*, const char*>>& given, Source source = Source::flag) {
  const Training training(given, source);
  try {
    check_training_job(training.options.job, training.set);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(TrainingJob, OneProcessRefusesTheBatchesThatAJobRefuses) {
  EXPECT_EQ(refusal({{"elastic-batch", "per-worker"}}),
            refusal({{"elastic-batch", "per-worker"}, {"num-workers", "2"}}));
  EXPECT_TRUE(refusal({{"elastic-batch", "per-worker"}}).starts_with("--elastic-batch per-worker needs"));
  EXPECT_TRUE(refusal({{"elastic-lr", "linear"}}).starts_with("--elastic-lr: the learning rate follows"));
  EXPECT_EQ(refusal({{"elastic-batch", "fixed-global"}}), "");
}

TEST(TrainingJob, NamesWhatHasNoEffectInOneProcess) {
  EXPECT_EQ(idle({{"min-workers", "2"}}),
            "--min-workers has no effect without a job: add -n with 2 or more, -H or --elastic");
  const std::string line = idle({{"env", "A=1"}, {"kube-name", "cats"}, {"transport", "gloo"}});
  EXPECT_TRUE(line.starts_with("--env, --transport, --kube-name have no effect")) << line;
  EXPECT_EQ(idle({{"min-workers", "2"}, {"elastic", "true"}}), "");
}

TEST(TrainingJob, WhatCountsInOneProcessIsNotNamed) {
  EXPECT_EQ(idle({{"num-workers", "1"},
                  {"launcher", "local"},
                  {"job-dir", "runs"},
                  {"kv-store", "device"},
                  {"gradient-dtype", "bfloat16"},
                  {"gc-type", "2bit"},
                  {"elastic-training-enabled", "False"},
                  {"elastic-batch", "fixed-global"}}),
            "");
}

TEST(TrainingJob, WhatAFileSaysOfJobsIsNotForThisTraining) {
  EXPECT_EQ(idle({{"comm-timeout", "5"}}, Source::user_config), "");
  EXPECT_EQ(refusal({{"launcher", "ssh"}}, Source::user_config), "");
  EXPECT_EQ(refusal({{"elastic-batch", "per-worker"}}, Source::user_config), "");
}

TEST(TrainingJob, HostsThatAreAskedForAreMissedInOneProcess) {
  EXPECT_EQ(refusal({{"launcher", "ssh"}}), "--launcher ssh needs hosts");
}

}  // namespace
}  // namespace dtrain::config
