// The toy training as a trial.
#pragma once

#include <mutex>

#include "toy_training.hpp"
#include "trial.hpp"

namespace dtrain::world {

class ToyTrial final : public Trial {
 public:
  explicit ToyTrial(const ToyTask& task) : task_(task) {}
  elastic::Left::How train(elastic::Membership& membership, const WorkerFacts& worker) override;
  std::uint64_t samples() const override { return std::uint64_t{task_.epochs} * task_.samples; }
  std::string judge() const override;

 private:
  const ToyTask task_;
  ToyLedger ledger_;
  mutable std::mutex mutex_;  // guards finished_
  std::vector<ToyState> finished_;
};

}  // namespace dtrain::world
