// The real trainer on a network of a few weights, with the reference backend.
#pragma once

#include <mutex>

#include "checked_training.hpp"
#include "train/tiny_training.hpp"

namespace dtrain::world {

// All objects share one folder of the process: one at a time.
class CheckedRealTraining final : public CheckedTraining, private train::TinyTraining {
 public:
  explicit CheckedRealTraining(std::uint32_t epochs);
  elastic::Left::How train(elastic::Membership& membership, const WorkerFacts& worker) override;
  std::uint64_t samples() const override { return std::uint64_t{options_.epochs} * train::kTinySamples; }
  std::string verify() const override;

 private:
  void TestBody() override {}
  backend::ModelState undisturbed() const;

  mutable std::mutex mutex_;  // guards finished_
  std::vector<backend::ModelState> finished_;
};

}  // namespace dtrain::world
