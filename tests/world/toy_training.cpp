#include "toy_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <thread>

#include <dtrain/base/random.hpp>

namespace dtrain::world {
namespace {

using elastic::Entry;
using elastic::Phase;
using elastic::TrainingPosition;
using elastic::Verdict;

std::vector<std::uint32_t> order_of(const ToyTask& task, std::uint32_t epoch) {
  std::vector<std::uint32_t> order(task.samples);
  std::iota(order.begin(), order.end(), 0u);
  RandomStream random(7, RandomUse::order, epoch, 0);
  for (std::uint32_t i = task.samples; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

// The samples of one shard of one step.
std::vector<std::uint32_t> samples_of_shard(const ToyTask& task, const std::vector<std::uint32_t>& order,
                                            std::uint64_t step, int shard) {
  const std::uint64_t begin = step * task.batch;
  const std::uint64_t size = std::min<std::uint64_t>(task.batch, task.samples - begin);
  const auto shards = static_cast<std::uint64_t>(task.shards), index = static_cast<std::uint64_t>(shard);
  const auto at = [&](std::uint64_t i) {
    return order.begin() + static_cast<std::ptrdiff_t>(begin + i * size / shards);
  };
  return {at(index), at(index + 1)};
}

void add_gradient(std::uint32_t sample, std::uint32_t epoch, std::span<const float> weights, std::span<float> sum) {
  RandomStream random(11, RandomUse::augment, epoch, sample);
  for (std::size_t i = 0; i < weights.size(); ++i) sum[i] += weights[i] * 0.25f - random.uniform(-1, 1);
  sum.back() += 1;  // the count travels in the same buffer
}

void apply_sum(std::span<const float> sum, std::vector<float>& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.5f * (sum[i] / sum.back());
}

std::vector<float> fresh_weights(const ToyTask& task) {
  return std::vector<float>(static_cast<std::size_t>(task.width), 1.0f);
}

template <typename T>
ByteView bytes_of_all(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

std::string pack(const TrainingPosition& position) {
  return std::string(reinterpret_cast<const char*>(&position), sizeof position);
}
TrainingPosition unpack(const std::string& text) {
  TrainingPosition position;
  std::memcpy(&position, text.data(), sizeof position);
  return position;
}

class Run {
 public:
  Run(elastic::Membership& membership, const ToyTask& task, ToyLedger& ledger)
      : membership_(membership), task_(task), ledger_(ledger) {}

  ToyResult run() {
    for (;;) {
      Entry entry = membership_.enter(state_.position);
      if (entry.kind == Entry::Kind::leave) return {ToyResult::Ended::removed, state_};
      if (entry.kind != Entry::Kind::train) return {ToyResult::Ended::stopped, state_};
      try {
        comm_ = entry.communicator.get();
        generation_ = entry.generation;
        synchronize();
        if (const auto ended = train_generation()) return {*ended, state_};
      } catch (const PeerLost& error) {
        membership_.lost(error);
      }
    }
  }

 private:
  // The most advanced rank sends its state to those behind; of equal ranks the first one does.
  void synchronize() {
    membership_.progress(Phase::entering);
    std::vector<TrainingPosition> standings;
    for (const std::string& text : comm_->all_gather(bytes_of(pack(state_.position))))
      standings.push_back(unpack(text));
    const auto best = std::max_element(standings.begin(), standings.end());
    if (!best->has_state) {
      take_over({{.has_state = true}, fresh_weights(task_), {}});
    } else {
      const int from = static_cast<int>(best - standings.begin());
      for (int rank = 0; rank < comm_->size(); ++rank) {
        if (standings[static_cast<std::size_t>(rank)] == *best) continue;
        if (comm_->rank() == from) send_state(rank);
        if (comm_->rank() == rank) receive_state(from, *best);
      }
    }
    membership_.entered(state_.position);
  }

  void send_state(int to) {
    comm_->send(to, bytes_of_all(state_.weights));
    const std::uint64_t steps = state_.history.size();
    comm_->send(to, std::as_bytes(std::span(&steps, 1)));
    comm_->send(to, bytes_of_all(state_.history));
  }

  void receive_state(int from, const TrainingPosition& position) {
    ToyState staged{position, fresh_weights(task_), {}};
    comm_->receive(from, std::as_writable_bytes(std::span(staged.weights)));
    std::uint64_t steps = 0;
    comm_->receive(from, std::as_writable_bytes(std::span(&steps, 1)));
    staged.history.resize(steps);
    comm_->receive(from, std::as_writable_bytes(std::span(staged.history)));
    take_over(std::move(staged));
  }

  void take_over(ToyState state) {
    membership_.begin_apply();
    state_ = std::move(state);
    membership_.end_apply(state_.position);
  }

  // Why the whole run ended; nothing when only this generation ended.
  std::optional<ToyResult::Ended> train_generation() {
    while (state_.position.epoch < task_.epochs) {
      const Verdict verdict = state_.position.step < task_.steps() ? train_step() : close_epoch();
      if (verdict == Verdict::change) return std::nullopt;
      if (verdict == Verdict::stop) return ToyResult::Ended::stopped;
    }
    return ToyResult::Ended::done;
  }

  Verdict train_step() {
    const auto reduction = comm_->begin_reduction({task_.shards, task_.width + 1, 0}, {{membership_.vote()}});
    membership_.progress(Phase::computing);
    const comm::ShardSpan mine = comm::shards_of_rank(comm_->rank(), comm_->size(), task_.shards);
    for (int shard = mine.first; shard < mine.last; ++shard) compute_shard(*reduction, shard);
    membership_.progress(Phase::reducing);
    const comm::Reduced reduced = reduction->finish();
    std::vector<std::uint64_t> votes;
    for (const comm::Note& note : reduced.notes) votes.push_back(note.words[0]);
    const Verdict verdict = membership_.judge(votes, false);
    apply(reduced.sum);
    return verdict;
  }

  void compute_shard(comm::Reduction& reduction, int shard) {
    const std::span<float> leaf = reduction.leaf(shard);
    std::ranges::fill(leaf, 0.0f);
    const TrainingPosition& at = state_.position;
    for (const std::uint32_t sample : samples_of_shard(task_, order_of(task_, at.epoch), at.step, shard)) {
      add_gradient(sample, at.epoch, state_.weights, leaf);
      ledger_.computed(at.epoch, at.step, generation_, sample);
    }
    std::this_thread::sleep_for(task_.shard_time);
    reduction.ready(shard, 0, static_cast<std::int64_t>(leaf.size()));
  }

  void apply(std::span<const float> sum) {
    membership_.begin_apply();
    apply_sum(sum, state_.weights);
    state_.position.samples_seen += static_cast<std::uint64_t>(sum.back());
    ++state_.position.step;
    state_.history.push_back(generation_);
    membership_.end_apply(state_.position);
  }

  Verdict close_epoch() {
    membership_.progress(Phase::evaluating);
    const std::uint64_t vote = membership_.vote();
    std::vector<std::uint64_t> votes;
    for (const std::string& text : comm_->all_gather(std::as_bytes(std::span(&vote, 1)))) {
      std::memcpy(&votes.emplace_back(), text.data(), sizeof vote);
    }
    const Verdict verdict = membership_.judge(votes, true);
    membership_.begin_apply();
    ++state_.position.epoch;
    state_.position.step = 0;
    membership_.end_apply(state_.position);
    return verdict;
  }

  elastic::Membership& membership_;
  const ToyTask& task_;
  ToyLedger& ledger_;
  ToyState state_;
  comm::Communicator* comm_ = nullptr;
  std::uint64_t generation_ = 0;
};

}  // namespace

void ToyLedger::computed(std::uint32_t epoch, std::uint64_t step, std::uint64_t generation, std::uint32_t sample) {
  const std::lock_guard lock(mutex_);
  samples_[{epoch, step, generation}].push_back(sample);
}

std::vector<std::uint32_t> ToyLedger::samples_of(std::uint32_t epoch, std::uint64_t step,
                                                 std::uint64_t generation) const {
  const std::lock_guard lock(mutex_);
  const auto found = samples_.find({epoch, step, generation});
  return found == samples_.end() ? std::vector<std::uint32_t>() : found->second;
}

ToyResult train_toy(elastic::Membership& membership, const ToyTask& task, ToyLedger& ledger) {
  return Run(membership, task, ledger).run();
}

std::vector<float> expected_weights(const ToyTask& task) {
  ToyTask quick = task;
  quick.shard_time = {};
  ToyLedger ledger;
  return train_toy(*elastic::make_fixed_membership(comm::make_single()), quick, ledger).state.weights;
}

std::string complaint(const ToyTask& task, const ToyLedger& ledger, const std::vector<std::uint64_t>& history) {
  if (history.size() != task.epochs * task.steps()) return fmt::format("{} steps were applied", history.size());
  for (std::uint32_t epoch = 0; epoch < task.epochs; ++epoch) {
    std::vector<std::uint32_t> seen;
    for (std::uint32_t step = 0; step < task.steps(); ++step) {
      const auto samples = ledger.samples_of(epoch, step, history[epoch * task.steps() + step]);
      seen.insert(seen.end(), samples.begin(), samples.end());
    }
    std::ranges::sort(seen);
    std::vector<std::uint32_t> expected(task.samples);
    std::iota(expected.begin(), expected.end(), 0u);
    if (seen != expected)
      return fmt::format("epoch {} consumed {} samples, not each of {} once", epoch, seen.size(), task.samples);
  }
  return {};
}

}  // namespace dtrain::world
