#include <dtrain/base/error.hpp>

#include "train/tiny_training.hpp"

namespace dtrain::train {
namespace {

// A run alone that saves after the second of five steps, and what resumes it.
class OtherRecords : public TinyTraining {
 protected:
  OtherRecords() {
    options_.epochs = 1;
    options_.checkpoint_prefix = folder_ / "m";
    options_.checkpoint_every_steps = 2;
  }

  void train_from(const Checkpoint* start) const {
    const auto backend = make_backend();
    const auto executable = compile(*backend);
    data::Loader training = loader();
    const auto membership = elastic::make_fixed_membership(comm::make_single());
    IgnoringObserver observer;
    train(tiny_network(), *executable, training, nullptr, *membership, options_, start, observer);
  }

  // All of one size, as raw pictures are.
  void pack_in_reverse() const {
    const data::RecordFile before(folder_ / "train.rec");
    data::RecordWriter writer(folder_ / "train.rec");
    for (std::size_t i = before.size(); i-- > 0;) {
      const data::Record record = before.read(i);
      writer.add(record.id, record.labels, record.payload);
    }
    writer.finish();
  }
};

TEST_F(OtherRecords, GoOnAtTheEndOfAnEpochAndNotInsideOne) {
  train_from(nullptr);
  const Checkpoint inside = load_checkpoint_file(folder_ / "m-0000-step00000002.json");
  const Checkpoint end = load_checkpoint_file(folder_ / "m-0001.json");
  EXPECT_FALSE(inside.job.records.contents.empty());
  EXPECT_EQ(inside.job.records, end.job.records);
  options_.epochs = 2;
  EXPECT_NO_THROW(train_from(&inside));
  pack_in_reverse();
  EXPECT_THROW(train_from(&inside), DataError);
  EXPECT_NO_THROW(train_from(&end));
  EXPECT_NE(load_checkpoint_file(folder_ / "m-0002.json").job.records, end.job.records);
}

}  // namespace
}  // namespace dtrain::train
