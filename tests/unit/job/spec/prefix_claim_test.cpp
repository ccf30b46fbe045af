#include "spec/prefix_claim.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/recording_reporter.hpp"
#include "spec/prefix_owner.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::job {
namespace {

// `--force` over the checkpoints m/x-0001 and m/x-0003.
class ForcedPrefix : public ::testing::Test {
 protected:
  ForcedPrefix() {
    config::OptionSet set;
    bind(set, options_);
    options_.model_prefix = prefix_;
    options_.force = true;
    options_.dry_run = true;  // refuses, and makes nothing
    make_folder(folder_.path() / "m");
    for (const std::uint32_t epoch : {1u, 3u}) save(prefix_, epoch);
  }

  static void save(const Path& prefix, std::uint32_t epoch) {
    train::save_checkpoint({prefix, epoch, 0}, train::small_checkpoint(epoch));
  }
  // What the refusal calls the weights; empty: they are not refused.
  std::string refused(const Path& weights) {
    options_.pretrained.file = weights;
    try {
      claim_prefix(options_, {}, reporter_);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  }
  static std::string replaces(const Path& file) {
    return "--force: replaces " + file.string() + ", the weights of --pretrained";
  }

  // What the run says before it replaces them.
  std::vector<std::string> said() {
    options_.dry_run = false;
    claim_prefix(options_, {}, reporter_);
    return reporter_.notes;
  }
  std::vector<std::string> replaces_up_to(const std::string& newest) const {
    return {"--force: replaces the checkpoints of " + prefix_.string() + " up to " + newest +
            "; those later than the first that this run saves are removed once it is saved"};
  }

  const ScratchFolder folder_{"dtrain-claim"};
  const Path prefix_ = folder_.path() / "m/x";
  config::TrainOptions options_;
  RecordingReporter reporter_;
};

TEST_F(ForcedPrefix, KeepsTheWeightsThatTheRunBeginsWith) {
  std::filesystem::create_directory_symlink(folder_.path() / "m", folder_.path() / "linked");
  std::filesystem::create_symlink(prefix_.string() + "-0001.safetensors", folder_.path() / "w.safetensors");
  for (const char* name :
       {"m/x-0003.safetensors", "m/../m/x-0001.safetensors", "linked/x-0003.safetensors", "w.safetensors"}) {
    EXPECT_EQ(refused(folder_.path() / name), replaces(folder_.path() / name));
  }
  EXPECT_EQ(refused(folder_.path() / "m/x-0003.json"), replaces(folder_.path() / "m/x-0003.safetensors"));
  const Path from_here = std::filesystem::relative(folder_.path() / "m/x-0003.safetensors");
  EXPECT_EQ(refused(from_here), replaces(from_here));
}

TEST_F(ForcedPrefix, KeepsTheCheckpointThatAPrefixNames) {
  EXPECT_EQ(refused(prefix_), replaces(prefix_.string() + "-0003.safetensors"));
}

TEST_F(ForcedPrefix, KeepsTensorsWithoutManifest) {
  const Path tensors = prefix_.string() + "-0003.safetensors";
  for (const char* stem : {"-0001", "-0003"}) std::filesystem::remove(prefix_.string() + stem + ".json");
  EXPECT_EQ(refused(tensors), replaces(tensors));
}

TEST_F(ForcedPrefix, KeepsParametersOfMxnetWithoutManifest) {
  const Path params = prefix_.string() + "-0007.params";
  write_file_atomic(params, "x");
  EXPECT_EQ(refused(params), replaces(params));
}

TEST_F(ForcedPrefix, TakesOtherWeights) {
  save(folder_.path() / "m/y", 3);
  std::filesystem::copy_file(prefix_.string() + "-0003.safetensors", folder_.path() / "m/copy.safetensors");
  for (const char* name : {"m/y-0003.safetensors", "m/y", "m/copy.safetensors", "m/none.safetensors"}) {
    EXPECT_EQ(refused(folder_.path() / name), "") << name;
  }
}

TEST_F(ForcedPrefix, NamesTheNewestThatItReplaces) {
  write_file_atomic(prefix_.string() + "-0003.params", "x");
  EXPECT_EQ(said(), replaces_up_to(prefix_.string() + "-0003"));
}

TEST_F(ForcedPrefix, NamesParametersOfMxnetThatItReplaces) {
  write_file_atomic(prefix_.string() + "-0010.params", "x");
  EXPECT_EQ(said(), replaces_up_to(prefix_.string() + "-0010.params"));
}

TEST_F(ForcedPrefix, NamesThemWithoutAnyCheckpoint) {
  options_.model_prefix = folder_.path() / "m/mxnet";
  write_file_atomic(options_.model_prefix->string() + "-0000.params", "x");
  EXPECT_EQ(said(), std::vector<std::string>()) << "a run begins with epoch 0";
  write_file_atomic(options_.model_prefix->string() + "-0002.params", "x");
  ASSERT_EQ(said().size(), 1u);
  EXPECT_NE(reporter_.notes[0].find("up to " + options_.model_prefix->string() + "-0002.params;"), std::string::npos);
}

TEST_F(ForcedPrefix, DoesNotEndAsAFileUnlessItsCheckpointsDo) {
  for (const char* ending : {".onnx", ".safetensors", ".json", ".params"}) {
    options_.model_prefix = (folder_.path() / "m/new").string() + ending;
    try {
      claim_prefix(options_, {}, reporter_);
      ADD_FAILURE() << "other commands would not find its checkpoints: " << ending;
    } catch (const UsageError& error) {
      EXPECT_EQ(error.hint(),
                "leave " + std::string(ending) + " out: --model-prefix " + (folder_.path() / "m/new").string());
    }
    save(*options_.model_prefix, 1);
    EXPECT_NO_THROW(claim_prefix(options_, {}, reporter_));
  }
}

// A run without --force, beside the parameters of an MXNet run up to epoch 10.
class PrefixOfMxnet : public ::testing::Test {
 protected:
  PrefixOfMxnet() {
    config::OptionSet set;
    bind(set, options_);
    options_.model_prefix = prefix_;
    options_.dry_run = true;
    write("-symbol.json");
    for (const char* ending : {"-0000.params", "-0001.params", "-0010.params"}) write(ending);
  }

  void write(const std::string& ending) const { write_file_atomic(prefix_.string() + ending, "x"); }
  void claim() { claim_prefix(options_, {}, reporter_); }

  const ScratchFolder folder_{"dtrain-claim"};
  const Path prefix_ = folder_.path() / "m";
  config::TrainOptions options_;
  RecordingReporter reporter_;
};

TEST_F(PrefixOfMxnet, IsNotMixedWithANewRun) {
  try {
    claim();
    FAIL() << "it would train beside them";
  } catch (const UsageError& error) {
    EXPECT_EQ(error.what(), "--model-prefix " + prefix_.string() +
                                ": has parameters in MXNet's format already, the newest are " + prefix_.string() +
                                "-0010.params");
    EXPECT_NE(error.hint().find("--load-epoch 10"), std::string::npos);
  }
}

TEST_F(PrefixOfMxnet, MayBeContinued) {
  options_.load_epoch = 10;
  EXPECT_NO_THROW(claim());
}

TEST_F(PrefixOfMxnet, LaterParametersAreNotTrainedOver) {
  options_.load_epoch = 1;
  try {
    claim();
    FAIL() << "it would write over those of epoch 10";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string_view(error.what()).find("already, the newest are " + prefix_.string() + "-0010.params"),
              std::string_view::npos)
        << error.what();
  }
  options_.force = true;
  EXPECT_NO_THROW(claim());
}

TEST_F(PrefixOfMxnet, ParametersBesideACheckpointAreContinuedWithIt) {
  train::save_checkpoint({prefix_, 10, 0}, train::small_checkpoint(10));
  options_.load_epoch = 10;
  EXPECT_NO_THROW(claim());
  write("-0011.params");
  EXPECT_THROW(claim(), UsageError);
  options_.load_epoch.reset();
  options_.resume = true;
  EXPECT_NO_THROW(claim()) << "a save that was cut off left them";
}

TEST_F(PrefixOfMxnet, HasNothingToResume) {
  options_.resume = true;
  EXPECT_THROW(claim(), UsageError);
}

TEST_F(PrefixOfMxnet, MayHaveTheParametersThatARunBeginsWith) {
  for (const char* ending : {"-0001.params", "-0010.params"}) std::filesystem::remove(prefix_.string() + ending);
  EXPECT_NO_THROW(claim());
}

// Jobs on other machines, and processes that train alone, which would save under one prefix.
class ClaimedPrefix : public ::testing::Test {
 protected:
  ClaimedPrefix() { make_folder(job_.path); }
  config::TrainOptions alone() const {
    config::TrainOptions options;
    config::OptionSet set;
    bind(set, options);
    options.model_prefix = prefix_;
    return options;
  }
  config::TrainOptions over_ssh() const {
    config::TrainOptions options = alone();
    options.job.launcher = config::Launcher::ssh;
    options.job.hosts = 2;
    options.job.folder = job_.path;
    return options;
  }
  std::optional<PrefixClaim> claim(const config::TrainOptions& options) { return claim_prefix(options, {}, reporter_); }
  // A coordinator that is gone without an end, as after kill -9.
  void leave_coordinator() const {
    write_coordinator(job_, {.pid = 1, .host = "gone", .addresses = {"127.0.0.1"}, .port = 1, .token = "t"});
  }

  const ScratchFolder folder_{"dtrain-claim"};
  const Path prefix_ = folder_.path() / "m/x";
  const JobFolder job_{folder_.path() / "job"};
  RecordingReporter reporter_;
};

TEST_F(ClaimedPrefix, IsThatOfOneRunOnWhateverMachines) {
  const auto first = claim(over_ssh());
  ASSERT_TRUE(first);
  config::TrainOptions other = over_ssh();
  other.job.folder = folder_.path() / "other";
  for (const config::TrainOptions& options : {other, alone()}) {
    try {
      claim(options);
      FAIL() << "two runs would save there";
    } catch (const Error& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("another run is writing its checkpoints there"), what.npos);
      EXPECT_NE(what.find("job folder " + job_.path.string()), what.npos) << what;
    }
  }
  EXPECT_EQ(read_owner(prefix_).token, first->token);
}

TEST_F(ClaimedPrefix, IsFreeOnceItsRunWasKilled) {
  claim(over_ssh());
  leave_coordinator();
  EXPECT_TRUE(claim(alone()));
  claim(over_ssh());
  std::filesystem::remove_all(job_.path);
  EXPECT_TRUE(claim(alone())) << "nobody can ask a job whose folder is gone";
}

TEST_F(ClaimedPrefix, KeepsTheTokenOfAJobThatMayGoOn) {
  const std::string token = claim(over_ssh())->token;
  EXPECT_NE(claim(over_ssh())->token, token) << "that job never ran";
  leave_coordinator();
  const std::string kept = read_owner(prefix_).token;
  EXPECT_EQ(claim(over_ssh())->token, kept);
  write_coordinator(job_, {.ended = "done"});
  EXPECT_NE(claim(over_ssh())->token, kept);
}

TEST_F(ClaimedPrefix, OfCopiesIsRefused) {
  config::TrainOptions options = over_ssh();
  options.model_prefix = "m/x";
  options.job.sync_to = folder_.path() / "copy";
  EXPECT_THROW(claim(options), UsageError);
}

}  // namespace
}  // namespace dtrain::job
