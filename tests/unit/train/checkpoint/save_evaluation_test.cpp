// Manifests that learn what the evaluation of their epoch found.
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"
#include "train/small_checkpoint.hpp"

namespace dtrain::train {
namespace {

const ValidationSet kValidated{.samples = 100, .records = {.sizes = "5a", .contents = "c0"}, .views = 6};

TEST(SavedEvaluations, AreInTheManifest) {
  const TemporaryFolder folder;
  for (const BestEpoch& best :
       {BestEpoch{.accuracy = 0.75, .epoch = 3}, BestEpoch{.accuracy = 1.0 / 3, .epoch = 1, .since = 2},
        BestEpoch{.is_due = true}, BestEpoch{.accuracy = 0, .epoch = 1, .is_due = true, .data = kValidated},
        BestEpoch{.data = ValidationSet{.samples = 7}}}) {
    Checkpoint saved = small_checkpoint();
    saved.best = best;
    save_checkpoint({folder / "p", 1}, saved);
    EXPECT_EQ(load_checkpoint(folder / "p", 1).best, best);
  }
  save_checkpoint({folder / "p", 1}, small_checkpoint());
  EXPECT_EQ(read_file(folder / "p-0001.json").find("\"best\""), std::string::npos);
}

TEST(SavedEvaluations, ComeToTheManifestBehindTheSave) {
  const TemporaryFolder folder;
  const CheckpointName name{folder / "p", 2};
  Checkpoint saved = small_checkpoint(2);
  saved.best = {.accuracy = 0.5, .epoch = 1, .is_due = true, .data = kValidated};
  save_checkpoint(name, saved);
  const std::string tensors = read_file(folder / "p-0002.safetensors");
  const BestEpoch found{.accuracy = 0.625, .epoch = 2, .data = kValidated};
  save_evaluation(name, found);
  const Checkpoint loaded = load_checkpoint(folder / "p", 2);
  EXPECT_EQ(loaded.best, found);
  EXPECT_EQ(state_sha256(loaded), state_sha256(saved));
  EXPECT_EQ(loaded.job.seed, saved.job.seed);
  EXPECT_EQ(read_file(folder / "p-0002.safetensors"), tensors);
  EXPECT_EQ(best_checkpoint(folder / "p").epoch, 2u);
}

TEST(SavedEvaluations, ChangeNoManifestWithoutOneThatIsDue) {
  const TemporaryFolder folder;
  const CheckpointName name{folder / "p", 1};
  save_evaluation(name, {.accuracy = 0.5, .epoch = 1});
  EXPECT_TRUE(list_checkpoints(folder / "p").empty());
  Checkpoint saved = small_checkpoint();
  for (const BestEpoch& best : {BestEpoch{}, BestEpoch{.accuracy = 0.5, .epoch = 1}}) {
    saved.best = best;
    save_checkpoint(name, saved);
    const std::string before = read_file(folder / "p-0001.json");
    save_evaluation(name, {.accuracy = 0.75, .epoch = 1});
    EXPECT_EQ(read_file(folder / "p-0001.json"), before);
  }
  write_file_atomic(folder / "p-0001.json", "no manifest");
  EXPECT_THROW(save_evaluation(name, {}), DataError);
}

}  // namespace
}  // namespace dtrain::train
