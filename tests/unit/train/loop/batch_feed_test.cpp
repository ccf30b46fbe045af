#include <chrono>
#include <thread>

#include <dtrain/train/batch_feed.hpp>

#include "train/tiny_training.hpp"

namespace dtrain::train {
namespace {

// Knows only what was staged.
class Stage final : public backend::HostExecutable {
 public:
  explicit Stage(bool stages) : stages_(stages) {}
  std::uint64_t stage(const backend::HostBatch& batch) override {
    if (!stages_) return 0;
    firsts.push_back(batch.sample_ids[0]);
    return firsts.size();
  }
  void enqueue(const backend::HostBatch&, std::span<const backend::ShardRange>, const backend::StepKey&,
               backend::StepSink) override {}
  void synchronize() override {}
  backend::StepMetrics set_sum(backend::StepSum) override { return {}; }
  void apply(const backend::Update&) override {}
  backend::StepMetrics evaluate(const backend::HostBatch&, std::span<const nn::ImageView>, std::span<float>) override {
    return {};
  }
  const backend::ModelState& state() const override { return state_; }
  void write_state(backend::ModelState) override {}
  void exchange_average() override {}
  std::uint64_t planned_bytes() const override { return 0; }
  backend::Profile profile(const backend::HostBatch&, int) override { return {}; }

  std::vector<std::uint32_t> firsts;  // of each batch, the id of its first sample

 private:
  const bool stages_;
  backend::ModelState state_;
};

class Feed : public TinyTraining {
 protected:
  const std::vector<data::Slice> slices_ = {{0, 10}, {10, 10}, {20, 10}, {30, 10}, {40, 5}};
};

TEST_F(Feed, StagesEachBatchOnceAndGivesItUnderItsName) {
  data::Loader samples = loader(false);
  Stage stage(true);
  BatchFeed feed(samples, stage);
  feed.start(0, slices_);
  for (std::size_t k = 0; k < slices_.size(); ++k) {
    const auto fed = feed.next();
    EXPECT_EQ(fed->batch.sample_ids[0], slices_[k].first);
    EXPECT_EQ(fed->host().staged, k + 1);
    EXPECT_EQ(stage.firsts.at(k), slices_[k].first);
  }
  EXPECT_FALSE(feed.next());
  EXPECT_EQ(stage.firsts.size(), slices_.size());
}

// It takes what is there without waiting, so it may be that nothing is there, but not every time.
TEST_F(Feed, IsABatchAheadWhereTheLoaderIs) {
  data::Loader samples = loader(false);
  Stage stage(true);
  BatchFeed feed(samples, stage);
  constexpr int kTries = 2000;
  for (int attempt = 0; attempt < kTries && stage.firsts.size() < 2; ++attempt) {
    stage.firsts.clear();
    feed.start(0, slices_);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(feed.next());
  }
  EXPECT_EQ(stage.firsts.size(), 2u);
}

TEST_F(Feed, ForgetsWhatItWasAheadWithWhenItStartsAnew) {
  data::Loader samples = loader(false);
  Stage stage(true);
  BatchFeed feed(samples, stage);
  for (int round = 0; round < 5; ++round) {
    feed.start(0, slices_);
    EXPECT_EQ(feed.next()->batch.sample_ids[0], 0u);
  }
}

TEST_F(Feed, TakesOneBatchAtATimeWhereNothingIsStaged) {
  data::Loader samples = loader(false);
  Stage stage(false);
  BatchFeed feed(samples, stage);
  feed.start(0, slices_);
  int batches = 0;
  for (; const auto fed = feed.next(); ++batches) EXPECT_EQ(fed->host().staged, 0u);
  EXPECT_EQ(batches, 5);
}

}  // namespace
}  // namespace dtrain::train
