// What a run says of its checkpoints when its GPU fails.
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/train/trainer.hpp>

#include "train/tiny_training.hpp"

namespace dtrain::train {
namespace {

// Fails as a GPU does, in an epoch.
class FailsInEpoch final : public IgnoringObserver {
 public:
  explicit FailsInEpoch(std::uint32_t epoch) : epoch_(epoch) {}
  void on_step(const StepReport& step) override {
    if (step.epoch == epoch_) throw DeviceFailure("the GPU failed, noticed at the end of its work", "nvidia-smi knows");
  }

 private:
  const std::uint32_t epoch_;
};

class DeviceFailures : public TinyTraining {
 protected:
  std::string hint_of_failure_in(std::uint32_t epoch) {
    const nn::Graph graph = tiny_network();
    const auto executable = compile(*backend::make_reference_backend());
    data::Loader training = loader();
    const auto membership = elastic::make_fixed_membership(comm::make_single());
    FailsInEpoch observer(epoch);
    try {
      train(graph, *executable, training, nullptr, *membership, options_, nullptr, observer);
    } catch (const DeviceFailure& failure) {
      EXPECT_EQ(std::string(failure.what()), "the GPU failed, noticed at the end of its work");
      return failure.hint();
    }
    return "no failure";
  }
};

TEST_F(DeviceFailures, NameTheCheckpointOnlyWhereThereIsOne) {
  const std::string none = "no checkpoint has been saved yet: begin again; nvidia-smi knows";
  EXPECT_EQ(hint_of_failure_in(1), none) << "of a run that saves nothing";
  options_.checkpoint_prefix = folder_ / "m";
  EXPECT_EQ(hint_of_failure_in(0), none);
  EXPECT_EQ(hint_of_failure_in(1), "the last checkpoint is good: resume from it; nvidia-smi knows");
}

}  // namespace
}  // namespace dtrain::train
