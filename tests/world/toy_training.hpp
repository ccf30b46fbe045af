// A minimal training loop over elastic/membership.hpp: a vector of weights, and gradients that are a pure function of
// weights and sample ids. It records which samples went into every step.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include <dtrain/elastic/membership.hpp>

namespace dtrain::world {

struct ToyTask {
  std::uint32_t epochs = 3;
  std::uint32_t samples = 103;  // no number of workers divides it, nor the batch
  std::uint32_t batch = 16;
  int shards = 8;
  int width = 67;                             // floats of the state
  std::chrono::microseconds shard_time{100};  // simulated work of a shard
  std::uint32_t steps() const { return (samples + batch - 1) / batch; }
};

// Which samples the ranks of a generation computed in a step, whether it was applied or not. Any thread.
class ToyLedger {
 public:
  void computed(std::uint32_t epoch, std::uint64_t step, std::uint64_t generation, std::uint32_t sample);
  // For the generation that applied the step: how often each sample was computed.
  std::vector<std::uint32_t> samples_of(std::uint32_t epoch, std::uint64_t step, std::uint64_t generation) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::vector<std::uint32_t>> samples_;
};

struct ToyState {
  elastic::TrainingPosition position;
  std::vector<float> weights;
  std::vector<std::uint64_t> history;  // [step of the whole run]: the generation that applied it
};

struct ToyResult {
  enum class Ended { done, removed, stopped } ended = Ended::done;
  ToyState state;
};

ToyResult train_toy(elastic::Membership& membership, const ToyTask& task, ToyLedger& ledger);

// The result of an undisturbed run.
std::vector<float> expected_weights(const ToyTask& task);

// Empty when the history of a finished run has every sample once in every epoch; otherwise a complaint.
std::string complaint(const ToyTask& task, const ToyLedger& ledger, const std::vector<std::uint64_t>& history);

}  // namespace dtrain::world
