#include "model_answers.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/files.hpp>
#include <dtrain/data/record.hpp>

#include "common/temporary_folder.hpp"
#include "reply.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::board {
namespace {

TEST(SpreadOfARun, NamesTheStateByTheOptimizer) {
  const TemporaryFolder folder;
  const RunPlace run{folder / "m-run", ""};
  const auto name_with = [&](nn::OptimizerKind kind) {
    train::Checkpoint saved = train::small_checkpoint();
    saved.job.optimizer.kind = kind;
    const auto slots = static_cast<std::size_t>(nn::optimizer_slots(kind));
    saved.state.optimizer.assign(slots * saved.state.parameters.size(), 1.0f);
    train::save_checkpoint({folder / "m", 1}, saved);
    const Json answer = spread_of(run, *parse_target("/api/spread"));
    EXPECT_FALSE(answer.at("tensors").as_array().at(0).at("state").is_null());
    EXPECT_NE(answer.at("state").at("meaning").as_string(), "");
    return answer.at("state").at("name").as_string();
  };
  EXPECT_EQ(name_with(nn::OptimizerKind::adam), "Averaged gradients");
  EXPECT_EQ(name_with(nn::OptimizerKind::signum), "Averaged gradients");
  EXPECT_EQ(name_with(nn::OptimizerKind::sgd), "Last update");
  EXPECT_EQ(name_with(nn::OptimizerKind::lars), "Last update");
  EXPECT_EQ(name_with(nn::OptimizerKind::nag), "Momentum");
  EXPECT_EQ(name_with(nn::OptimizerKind::rmsprop), "Averaged squares");
  EXPECT_EQ(name_with(nn::OptimizerKind::ftml), "Averaged squares");
  EXPECT_EQ(name_with(nn::OptimizerKind::adagrad), "Sum of squares");
}

// A train.toml that this user did not write leads to no checkpoints elsewhere, and no link beside the run is followed.
TEST(PlaceOfARun, OfAnotherUserHasTheCheckpointsBesideItAlone) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "jobs/job");
  train::save_checkpoint({folder / "elsewhere", 1}, train::small_checkpoint());
  const auto with = [&](const std::string& prefix, bool is_own) {
    RunPlace run{folder / "jobs/job", "model-prefix = \"" + prefix + "\"\n"};
    write_file_atomic(folder / "jobs/job/train.toml", is_own ? run.settings : "");
    return run;
  };
  const auto shows = [](const RunPlace& run) {
    try {
      model_of(run, *parse_target("/api/model"));
      return true;
    } catch (const Missing&) {
      EXPECT_THROW(spread_of(run, *parse_target("/api/spread")), Missing);
      return false;
    }
  };
  const std::string elsewhere = folder / "elsewhere", beside = folder / "jobs/m";
  EXPECT_TRUE(shows(with(elsewhere, true)));
  EXPECT_EQ(with(elsewhere, false).prefix(), "");
  EXPECT_FALSE(shows(with(elsewhere, false)));
  train::save_checkpoint({beside, 1}, train::small_checkpoint());
  EXPECT_TRUE(shows(with(beside, false)));
  for (const char* ending : {"-0001.json", "-0001.safetensors"}) {
    std::filesystem::remove(beside + ending);
    std::filesystem::create_symlink(elsewhere + ending, beside + ending);
    EXPECT_FALSE(shows(with(beside, false))) << ending;
    EXPECT_TRUE(shows(with(beside, true))) << ending;
    std::filesystem::remove(beside + ending);
    std::filesystem::copy_file(elsewhere + ending, beside + ending);
  }
}

// As the training had them, which was started in the folder above the run's.
TEST(PlaceOfARun, FindsRecordsByPrefixPatternAndList) {
  const TemporaryFolder folder;
  for (const char* name : {"a_train_0.rec", "a_train_1.rec", "b.rec"}) {
    data::RecordWriter writer(folder / name);
    writer.add(0, 0, bytes_of("no picture"));
    writer.finish();
  }
  const RunPlace run{folder / "runs/m-run", ""};
  const auto at = [&](const char* name) { return std::string(folder / name); };
  EXPECT_EQ(run.find_records("a_train"), at("a_train"));
  EXPECT_EQ(run.find_records("a_*.rec"), at("a_*.rec"));
  EXPECT_EQ(run.find_records("b.rec"), at("b.rec"));
  EXPECT_EQ(run.find_records("a_train, b"), at("a_train") + "," + at("b"));
  EXPECT_EQ(run.find_records(at("b.rec") + ",a_train"), at("b.rec") + "," + at("a_train"));
  EXPECT_EQ(run.find_records("s3://bucket/c,b"), "s3://bucket/c," + at("b"));
  for (const char* other : {"none", "a_train,none", "a_train,", "/elsewhere/c"})
    EXPECT_EQ(run.find_records(other), other) << "as it stands there";
}

}  // namespace
}  // namespace dtrain::board
