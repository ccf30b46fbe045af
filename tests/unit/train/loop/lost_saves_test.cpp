// Checkpoints that a lost rank 0 did not write, or did not begin.
#include "train/elastic_run.hpp"

namespace dtrain::train {
namespace {

TEST_F(ElasticTraining, TheNextRankZeroSavesTheEpochThatTheOneBeforeItDidNot) {
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "m";
  prefixes_ = {{0, folder_ / "lost" / "m"}};
  const JobEnd job = run({{.workers = {0, 1}, .until = 65, .killed = 0}, {.workers = {1, 2}}});
  expect_same_run(alone, job);
  const std::vector<CheckpointName> names = list_checkpoints(folder_ / "m");
  ASSERT_EQ(names.size(), 2u) << "of epochs 2 and 1";
  EXPECT_EQ(state_sha256(load_checkpoint_file(names.at(1).stem() + ".json")),
            state_sha256(load_checkpoint_file(folder_ / "lost" / "m-0001.json")));
}

TEST_F(ElasticTraining, ARankOfAnotherHostSavesTheEpochThatLostHostsDidNot) {
  const JobEnd alone = undisturbed();
  prefixes_ = {{0, folder_ / "lost" / "m"}};
  on_point_ = [](int worker, Point point, std::uint64_t samples_seen) {
    if (worker == 1 && point == Point::voting && samples_seen >= 65) throw Killed();
  };
  using Hosts = std::vector<std::string>;
  int each = 0;
  for (const Hosts& hosts : {Hosts{"a", "a", "b"}, Hosts{"a", "b", "c"}}) {
    options_.checkpoint_prefix = folder_ / std::to_string(each++) / "m";
    const JobEnd job = run({{.workers = {0, 1, 2}, .until = 65, .killed = 0, .hosts = hosts}, {.workers = {2, 3}}});
    EXPECT_TRUE(job.workers.at(0).killed && job.workers.at(1).killed);
    expect_same_run(alone, job);
    EXPECT_EQ(list_checkpoints(*options_.checkpoint_prefix).size(), 2u) << "of epochs 2 and 1";
  }
  on_point_ = {};
}

TEST_F(ElasticTraining, TheNextRankZeroSavesTheStepWhoseSaveTheOneBeforeItDidNotBegin) {
  options_.checkpoint_every_steps = 2;
  options_.checkpoint_prefix = folder_ / "a" / "m";
  const JobEnd alone = undisturbed();
  options_.checkpoint_prefix = folder_ / "b" / "m";
  const JobEnd job =
      run({{.workers = {0, 1, 2}, .until = 20, .killed = 0, .point = Point::saving}, {.workers = {1, 2}}});
  EXPECT_TRUE(job.workers.at(0).killed);
  expect_same_run(alone, job);
  EXPECT_EQ(list_checkpoints(folder_ / "b" / "m").size(), list_checkpoints(folder_ / "a" / "m").size());
}

TEST_F(ElasticTraining, TheNextRankZeroDoesNotWriteAgainWhatTheOneBeforeItSaved) {
  options_.checkpoint_every_steps = 2;
  options_.checkpoint_prefix = folder_ / "m";
  on_point_ = [this](int worker, Point point, std::uint64_t samples_seen) {
    if (worker == 2 || point != Point::before_apply || samples_seen < 20) return;
    while (list_checkpoints(folder_ / "m").empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  const JobEnd job = run(
      {{.workers = {0, 1}, .until = 20, .killed = 0, .point = Point::before_apply, .frozen = 1}, {.workers = {1, 2}}});
  on_point_ = {};
  EXPECT_TRUE(job.workers.at(0).killed);
  const std::vector<CheckpointName> names = list_checkpoints(folder_ / "m");
  EXPECT_EQ(load_checkpoint_file(names.back().stem() + ".json").job.generation, 1u) << names.back().stem();
}

TEST_F(ElasticTraining, DoesNotSaveAgainTheCheckpointThatItBeginsWith) {
  options_.checkpoint_prefix = folder_ / "a" / "m";
  run({{.workers = {0}, .until = 20, .stops = true}});
  const Checkpoint saved = load_checkpoint_file(list_checkpoints(folder_ / "a" / "m").at(0).stem() + ".json");
  ASSERT_EQ(saved.cursor.step, 2u);
  options_.checkpoint_every_steps = 2;
  options_.checkpoint_prefix = folder_ / "b" / "m";
  options_.epochs = 1;
  run({{.workers = {0, 1}}}, {{0, &saved}, {1, &saved}});
  EXPECT_EQ(list_checkpoints(folder_ / "b" / "m").size(), 2u) << "at step 4 and at the end";
}

}  // namespace
}  // namespace dtrain::train
