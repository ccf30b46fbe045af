// Runs whose images grow, under joins, leaves, deaths and resumes: the result has the bits of a run without any.
#include "../elastic_run.hpp"

namespace dtrain::train {
namespace {

// 2 epochs of steps of 10, 10, 10, 10 and 5 samples: sizes of 4, 6 and 8 pixels.
class ProgressiveRun : public ElasticTraining {
 protected:
  ProgressiveRun() { sizes_ = {.enabled = true, .delay = 0.2, .finetune = 0.3, .increment = 2}; }
};

TEST_F(ProgressiveRun, AnyNumberOfWorkersEndsInTheSameBits) {
  const JobEnd alone = undisturbed();
  EXPECT_EQ(alone.log.steps.size(), 10u);
  expect_same_run(alone, run({{.workers = {0, 1}}}));
  expect_same_run(alone, run({{.workers = {0, 1, 2}}}));
  sizes_ = {};
  EXPECT_NE(undisturbed().survivor().state.parameters, alone.survivor().state.parameters);
}

TEST_F(ProgressiveRun, AWorkerThatJoinsComputesOnTheSizeOfTheStep) {
  use_every_recipe();
  const JobEnd alone = undisturbed();
  expect_same_run(alone, run({{.workers = {0}, .until = 20}, {.workers = {0, 1}, .until = 75}, {.workers = {1, 2}}}));
}

TEST_F(ProgressiveRun, AWorkerThatDiesTakesNothingWithIt) { expect_no_trace_of_a_death(); }

TEST_F(ProgressiveRun, ResumesInTheMiddleWithTheSameBits) {
  const JobEnd alone = undisturbed();
  for (const std::uint64_t until : {20, 45, 65}) {
    options_.checkpoint_prefix = folder_ / std::to_string(until);
    run({{.workers = {0, 1}, .until = until, .stops = true}});
    std::optional<Checkpoint> saved;
    for (const auto& each : list_checkpoints(*options_.checkpoint_prefix)) {
      Checkpoint checkpoint = load_checkpoint_file(each.stem() + ".json");
      if (checkpoint.cursor.samples_seen == until) saved = std::move(checkpoint);
    }
    ASSERT_TRUE(saved) << until;
    EXPECT_EQ(saved->graph.input(), kTinyImage);
    const JobEnd second = run({{.workers = {0}}}, {{0, &*saved}});
    expect_same_bits(alone.survivor().state, second.survivor().state);
  }
}

}  // namespace
}  // namespace dtrain::train
