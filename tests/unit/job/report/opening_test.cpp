#include <gtest/gtest.h>

#include "report/opening.hpp"

namespace dtrain::job {
namespace {

OpeningFacts small_run() {
  return {.training = {"d/train.rec", 1300},
          .validation = {"d/val.rec", 100},
          .network = "mlp",
          .parameters = 310090,
          .image = {3, 28, 24},
          .classes = 10,
          .epochs = 2,
          .batch = 50,
          .threads = 2,
          .dtype = "float32",
          .checkpoint = "m/x-0001"};
}

using Lines = std::vector<std::string>;

TEST(Opening, SaysDataNetworkBatchDeviceAndModel) {
  EXPECT_EQ(opening_lines(small_run()),
            (Lines{"The run trains on the 1,300 images of d/train.rec and validates on the 100 images of d/val.rec",
                   "The network mlp has 310,090 parameters and sorts colour images of 24 x 28 pixels into 10 classes",
                   "Each step takes 50 images, an epoch 26 steps, and the run has 2 epochs",
                   "It computes on the CPU with 2 threads, in float32",
                   "The model is saved after each epoch. The log counts epochs from 0 and file names count those that "
                   "are complete: Epoch[0] ends with \"m/x-0001\""}));
}

TEST(Opening, CountsWhatIsTrainedOn) {
  OpeningFacts facts = small_run();
  facts.num_examples = 101;
  facts.validation = {};
  facts.epochs = 1;
  const Lines lines = opening_lines(facts);
  EXPECT_EQ(lines[0], "The run trains on the first 101 images of d/train.rec");
  EXPECT_EQ(lines[2], "Each step takes 50 images, an epoch 3 steps, and the run has 1 epoch");
  facts.num_examples = 1301;
  EXPECT_EQ(opening_lines(facts)[0],
            "The run trains on the 1,300 images of d/train.rec (--num-examples 1301 asks for more)");
}

TEST(Opening, LeavesOutWhatIsNotKnown) {
  OpeningFacts facts = small_run();
  facts.training = {"s3://bucket/train", std::nullopt};
  facts.checkpoint.clear();
  const Lines lines = opening_lines(facts);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_TRUE(lines[0].starts_with("The run trains on the images of s3://bucket/train and")) << lines[0];
  EXPECT_EQ(lines[2], "Each step takes 50 images; the run has 2 epochs");
}

TEST(Opening, SaysWhereTheWorkersCompute) {
  OpeningFacts facts = small_run();
  facts.workers = 4;
  EXPECT_EQ(opening_lines(facts)[3], "It computes in 4 workers, each on the CPU with 2 threads, in float32");
  facts.gpus = "1,0";
  EXPECT_EQ(opening_lines(facts)[3], "It computes in 4 workers on GPUs 1,0, in float32");
  facts.hosts = 2;
  EXPECT_EQ(opening_lines(facts)[3], "It computes in 4 workers on GPUs 1,0 of each host, in float32");
}

TEST(Opening, NamesShardsWhereAStepHasSeveral) {
  OpeningFacts facts = small_run();
  facts.shards = 4;
  EXPECT_TRUE(opening_lines(facts)[2].starts_with("Each step takes 50 images in 4 logical shards, an epoch"));
  facts.batch_per_worker = true;
  EXPECT_EQ(opening_lines(facts)[2], "Each step takes 50 images on each worker; the run has 2 epochs");
}

}  // namespace
}  // namespace dtrain::job
