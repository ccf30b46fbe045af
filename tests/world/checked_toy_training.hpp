// The toy training, with its check.
#pragma once

#include <mutex>

#include "checked_training.hpp"
#include "toy_training.hpp"

namespace dtrain::world {

class CheckedToyTraining final : public CheckedTraining {
 public:
  explicit CheckedToyTraining(const ToyTask& task) : task_(task) {}
  elastic::Left::How train(elastic::Membership& membership, const WorkerFacts& worker) override;
  std::uint64_t samples() const override { return std::uint64_t{task_.epochs} * task_.samples; }
  std::string verify() const override;

 private:
  const ToyTask task_;
  ToyLedger ledger_;
  mutable std::mutex mutex_;  // guards finished_
  std::vector<ToyState> finished_;
};

}  // namespace dtrain::world
