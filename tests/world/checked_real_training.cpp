#include "checked_real_training.hpp"

#include <fmt/format.h>

#include <numeric>

#include <dtrain/train/ledger.hpp>

namespace dtrain::world {

using elastic::Left;
using train::TrainResult;

CheckedRealTraining::CheckedRealTraining(std::uint32_t epochs) {
  options_.epochs = epochs;
  options_.ledger = train::LedgerOptions{folder_ / "ledger", {}};
}

Left::How CheckedRealTraining::train(elastic::Membership& membership, const WorkerFacts& worker) {
  const auto executable = compile(*backend::make_reference_backend());
  data::Loader training = loader(), validation = loader(false);
  train::TrainerOptions options = options_;
  options.ledger->worker = fmt::format("w{}", worker.worker);
  train::IgnoringObserver nobody;
  const TrainResult result =
      train::train(train::tiny_network(), *executable, training, &validation, membership, options, nullptr, nobody);
  if (result.ended == TrainResult::Ended::removed) return Left::How::removed;
  if (result.ended == TrainResult::Ended::stopped) return Left::How::stopped;
  const std::lock_guard lock(mutex_);
  finished_.push_back(executable->read_state());
  return Left::How::done;
}

backend::ModelState CheckedRealTraining::undisturbed() const {
  const auto executable = compile(*backend::make_reference_backend());
  data::Loader training = loader();
  train::TrainerOptions options = options_;
  options.ledger.reset();
  train::IgnoringObserver nobody;
  train::train(train::tiny_network(), *executable, training, nullptr,
               *elastic::make_fixed_membership(comm::make_single()), options, nullptr, nobody);
  return executable->read_state();
}

std::string CheckedRealTraining::verify() const {
  const std::lock_guard lock(mutex_);
  if (finished_.empty()) return "no worker finished";
  const backend::ModelState expected = undisturbed();
  for (const backend::ModelState& state : finished_) {
    const bool same = state.parameters == expected.parameters && state.statistics == expected.statistics &&
                      state.optimizer == expected.optimizer && state.updates == expected.updates;
    if (!same) return "another state than that of an undisturbed run";
  }
  const train::Ledger ledger = train::read_ledger(options_.ledger->folder);
  std::vector<std::uint32_t> all(train::kTinySamples);
  std::iota(all.begin(), all.end(), 0u);
  for (std::uint32_t epoch = 0; epoch < options_.epochs; ++epoch) {
    if (ledger.epoch(epoch) != all) return fmt::format("epoch {} did not consume every sample once", epoch);
  }
  return {};
}

}  // namespace dtrain::world
