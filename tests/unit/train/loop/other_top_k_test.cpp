// A run that goes on inside an epoch with another K of its top-K accuracy.
#include "loop/run_state.hpp"
#include "train/tiny_training.hpp"

namespace dtrain::train {
namespace {

class OtherTopK : public TinyTraining {
 protected:
  // Saved after the second of five steps.
  Checkpoint saved_inside(int top_k) {
    options_.epochs = 1;
    options_.checkpoint_prefix = folder_ / "m";
    options_.checkpoint_every_steps = 2;
    options_.top_k = top_k;
    const auto backend = make_backend();
    const auto executable = compile(*backend);
    data::Loader training = loader();
    const auto membership = elastic::make_fixed_membership(comm::make_single());
    IgnoringObserver observer;
    train(tiny_network(), *executable, training, nullptr, *membership, options_, nullptr, observer);
    return load_checkpoint_file(folder_ / "m-0000-step00000002.json");
  }
  RunState resumed(const Checkpoint& start, int top_k) const {
    TrainerOptions options = options_;
    options.top_k = top_k;
    return start_of_run(&start, loader(), nullptr, options);
  }
};

TEST_F(OtherTopK, CountsTheEpochAnewAndSaysSo) {
  Checkpoint inside = saved_inside(3);
  EXPECT_EQ(inside.top_k, 3);
  for (const int same : {3, 0}) {  // 0: none is reported
    const RunState run = resumed(inside, same);
    EXPECT_EQ(run.totals.count, 20) << same;
    EXPECT_TRUE(run.settled.empty()) << same;
  }
  const RunState run = resumed(inside, 2);
  EXPECT_EQ(run.totals.count, 0);
  EXPECT_EQ(run.cursor, inside.cursor);
  ASSERT_EQ(run.settled.size(), 1u);
  const auto& note = std::get<WarningReport>(run.settled.front());
  EXPECT_NE(note.text.find("with setting 'top-k' 3, not 2"), std::string::npos) << note.text;
  inside.top_k.reset();  // an earlier version wrote it
  EXPECT_EQ(resumed(inside, 2).totals.count, 20);
}

TEST_F(OtherTopK, DoesNotMatterBetweenEpochs) {
  saved_inside(3);
  const RunState run = resumed(load_checkpoint_file(folder_ / "m-0001.json"), 2);
  EXPECT_TRUE(run.settled.empty());
}

}  // namespace
}  // namespace dtrain::train
