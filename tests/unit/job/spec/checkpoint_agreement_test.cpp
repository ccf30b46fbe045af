#include "spec/checkpoint_agreement.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::job {
namespace {

using GivenTexts = std::vector<std::pair<const char*, const char*>>;

// "WHAT | HINT" with which a resumed run with these options is refused; empty: it goes on.
std::string refusal_with_hint(const train::Checkpoint& checkpoint, const GivenTexts& given) {
  config::TrainOptions options;
  config::OptionSet set;
  bind(set, options);
  options.resume = true;
  for (const auto& [name, text] : given) {
    set.find(name)->set(text);
    set.find(name)->source = config::Source::flag;
  }
  try {
    agree_with_checkpoint(checkpoint, set, options);
  } catch (const UsageError& error) {
    return error.what() + (" | " + error.hint());
  }
  return {};
}

std::string refusal_to_resume(const train::Checkpoint& checkpoint, const GivenTexts& given) {
  const std::string refusal = refusal_with_hint(checkpoint, given);
  return refusal.substr(0, refusal.find(" | "));
}

train::Checkpoint checkpoint_of(int batch, int shards) {
  train::Checkpoint checkpoint;
  checkpoint.job.global_batch = batch;
  checkpoint.job.logical_shards = shards;
  return checkpoint;
}

TEST(CheckpointAgreement, RefusesOtherPixels) {
  train::Checkpoint checkpoint = checkpoint_of(50, 1);
  config::DataOptions data;
  data.augment.mean = {120.5f, 110, 100};
  data.augment.std = {58, 58, 58};
  data.augment.resize = 26;
  checkpoint.job.preprocessing = config::preprocessing_of(data);
  EXPECT_EQ(refusal_to_resume(checkpoint, {}), "");
  EXPECT_EQ(refusal_to_resume(checkpoint, {{"rgb-mean", "120.5,110,100"}, {"rgb-std", "58"}, {"resize", "26"}}), "");
  EXPECT_EQ(refusal_to_resume(checkpoint, {{"rgb-std", "20"}}),
            "--rgb-std 20,20,20: the checkpoint was trained with 58,58,58");
  EXPECT_EQ(refusal_to_resume(checkpoint, {{"rgb-mean", "0"}}),
            "--rgb-mean 0,0,0: the checkpoint was trained with 120.5,110,100");
  EXPECT_EQ(refusal_to_resume(checkpoint, {{"resize", "0"}}), "--resize 0: the checkpoint was trained with 26");
  checkpoint.job.preprocessing = Json();
  EXPECT_EQ(refusal_to_resume(checkpoint, {{"rgb-std", "20"}, {"resize", "30"}}), "") << "it does not say";
}

// The options of a resumed run whose workers have batches of their own, after the agreement.
config::ComputeOptions resumed_with_own_batches(const train::Checkpoint& checkpoint, const GivenTexts& given) {
  config::TrainOptions options;
  config::OptionSet set;
  bind(set, options);
  options.resume = true;
  options.job.batch = train::ElasticBatch::per_worker;
  for (const auto& [name, text] : given) {
    set.find(name)->set(text);
    set.find(name)->source = config::Source::flag;
  }
  agree_with_checkpoint(checkpoint, set, options);
  return options.compute;
}

TEST(CheckpointAgreement, TakesTheBatchOfAWorker) {
  train::Checkpoint checkpoint = checkpoint_of(64, 1);
  checkpoint.job.rate_batch = checkpoint.job.worker_batch = 32;
  EXPECT_EQ(resumed_with_own_batches(checkpoint, {}).batch_size, 32);
  EXPECT_EQ(resumed_with_own_batches(checkpoint, {{"gpus", "0,1"}}).batch_size, 64) << "that of a host";
  EXPECT_EQ(resumed_with_own_batches(checkpoint, {{"elastic", "true"}, {"batch-size", "16"}}).batch_size, 16);
  checkpoint.job.worker_batch = 0;
  EXPECT_EQ(resumed_with_own_batches(checkpoint, {}).batch_size, config::ComputeOptions{}.batch_size) << "unknown";
}

TEST(CheckpointAgreement, SaysWhereTheBatchOfAJobHasNoEffect) {
  config::TrainOptions options;
  config::OptionSet set;
  bind(set, options);
  options.resume = options.job.elastic = true;
  options.compute.hosts = 2;
  const auto choose = [&](const char* text) {
    set.find("batch-size")->set(text);
    set.find("batch-size")->source = config::Source::flag;
    agree_with_checkpoint(checkpoint_of(64, 1), set, options);
    return unheeded_batch(set, options);
  };
  EXPECT_EQ(choose("32"), "");
  EXPECT_EQ(choose("64"), "A step keeps the checkpoint's 64 samples: --batch-size 64 would make it 128");
}

TEST(CheckpointAgreement, RefusesAnotherStepInTheUsersWords) {
  const train::Checkpoint checkpoint = checkpoint_of(32, 4);
  EXPECT_EQ(refusal_to_resume(checkpoint, {{"batch-size", "32"}}), "");
  EXPECT_EQ(refusal_to_resume(checkpoint, {{"batch-size", "8"}, {"accumulate", "4"}}), "");
  EXPECT_EQ(refusal_to_resume(checkpoint, {{"accumulate", "4"}}), "");
  EXPECT_EQ(refusal_with_hint(checkpoint, {{"batch-size", "16"}}),
            "--batch-size 16: the checkpoint was trained with 32 samples a step | leave it out to resume, or use "
            "another --model-prefix");
  EXPECT_EQ(refusal_with_hint(checkpoint, {{"batch-size", "16"}, {"accumulate", "4"}}),
            "--batch-size 16 and --accumulate 4: the checkpoint was trained with 32 samples a step | leave them out to "
            "resume, or use another --model-prefix");
  EXPECT_EQ(refusal_to_resume(checkpoint, {{"global-batch", "64"}, {"accumulate", "4"}}),
            "--global-batch 64: the checkpoint was trained with 32 samples a step");
}

TEST(CheckpointAgreement, RefusesToAccumulateMoreThanThereAreShards) {
  EXPECT_EQ(
      refusal_to_resume(checkpoint_of(50, 1), {{"accumulate", "4"}}),
      "--accumulate 4: the checkpoint was trained with 1 logical shard a step, and each of the 4 batches needs at "
      "least one");
  EXPECT_EQ(refusal_to_resume(checkpoint_of(50, 1), {{"accumulate", "1"}}), "");
  EXPECT_EQ(refusal_to_resume(checkpoint_of(50, 8), {{"accumulate", "4"}}), "");
}

}  // namespace
}  // namespace dtrain::job
