// The real trainer on a network of a few weights, with the reference backend, as a trial.
#pragma once

#include <mutex>

#include "train/tiny_training.hpp"
#include "trial.hpp"

namespace dtrain::world {

// Its folder is one for the process: one at a time.
class RealTrial final : public Trial, private train::TinyTraining {
 public:
  explicit RealTrial(std::uint32_t epochs);
  elastic::Left::How train(elastic::Membership& membership, const WorkerFacts& worker) override;
  std::uint64_t samples() const override { return std::uint64_t{options_.epochs} * train::kTinySamples; }
  std::string judge() const override;

 private:
  void TestBody() override {}
  backend::ModelState undisturbed() const;

  mutable std::mutex mutex_;  // guards finished_
  std::vector<backend::ModelState> finished_;
};

}  // namespace dtrain::world
