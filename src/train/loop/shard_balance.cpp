#include "shard_balance.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/stats.hpp>

namespace dtrain::train {
namespace {

constexpr std::size_t kStepsOfWindow = 12;
constexpr double kLeastGain = 0.08;  // of a step
constexpr int kMostRest = 64;        // windows

constexpr int kTimeBits = 28;  // of microseconds: 4.5 minutes
constexpr std::uint64_t kMostTime = (std::uint64_t{1} << kTimeBits) - 1;
constexpr int kMostLanes = 255;

std::uint64_t bits_of(std::chrono::microseconds time) {
  return std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0)), kMostTime);
}

double seconds(std::chrono::microseconds time) { return std::chrono::duration<double>(time).count(); }

double slowest(std::span<const Pace> paces, std::span<const int> counts) {
  double longest = 0;
  for (std::size_t rank = 0; rank < paces.size(); ++rank)
    longest = std::max(longest, paces[rank].seconds_for(counts[rank]));
  return longest;
}

std::vector<int> sizes(const comm::ShardSpans& spans) {
  std::vector<int> counts;
  for (const comm::ShardSpan& span : spans) counts.push_back(span.size());
  return counts;
}

}  // namespace

// One shard after the other, to the rank that would be done with it first. That is the best that can be done, because a
// further shard never makes a rank faster.
std::vector<int> balanced_counts(std::span<const Pace> paces, int shards) {
  DTRAIN_CHECK(static_cast<int>(paces.size()) <= shards, "more ranks than shards");
  std::vector<int> counts(paces.size(), 1);
  for (int left = shards - static_cast<int>(paces.size()); left > 0; --left) {
    std::size_t best = 0;
    for (std::size_t rank = 1; rank < paces.size(); ++rank) {
      const double here = paces[rank].seconds_for(counts[rank] + 1), there = paces[best].seconds_for(counts[best] + 1);
      if (here < there || (here == there && counts[rank] < counts[best])) best = rank;
    }
    ++counts[best];
  }
  return counts;
}

std::uint64_t word_of(const StepTimes& times) {
  const auto lanes = static_cast<std::uint64_t>(std::clamp(times.lanes, 1, kMostLanes));
  return lanes << (2 * kTimeBits) | bits_of(times.step) << kTimeBits | bits_of(times.own);
}

StepTimes times_of(std::uint64_t word) {
  return {.own = std::chrono::microseconds(word & kMostTime),
          .step = std::chrono::microseconds(word >> kTimeBits & kMostTime),
          .lanes = std::max(1, static_cast<int>(word >> (2 * kTimeBits)))};
}

ShardBalance::ShardBalance(int ranks, int shards, std::chrono::duration<double> window)
    : shards_(shards),
      shortest_window_(window.count()),
      counts_(sizes(comm::even_spans(ranks, shards))),
      spans_(comm::spans_of_counts(counts_)),
      lanes_(counts_.size(), 1),
      window_{.own = std::vector<std::vector<double>>(counts_.size()), .step = {}},
      steps_to_skip_(1) {}

bool ShardBalance::note(std::span<const StepTimes> times) {
  if (static_cast<int>(counts_.size()) >= shards_) return false;
  const bool measured = std::ranges::all_of(times, [](const StepTimes& each) { return each.own.count() > 0; });
  if (!measured) return false;
  if (steps_to_skip_ > 0) {
    --steps_to_skip_;
    return false;
  }
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    window_.own[rank].push_back(seconds(times[rank].own));
    lanes_[rank] = times[rank].lanes;
  }
  window_.step.push_back(seconds(times.front().step));
  window_.seconds += window_.step.back();
  if (window_.step.size() < kStepsOfWindow || window_.seconds < shortest_window_) return false;
  const bool moved = decide();
  window_ = {.own = std::vector<std::vector<double>>(counts_.size()), .step = {}};
  return moved;
}

bool ShardBalance::decide() {
  const double step = median(window_.step);
  if (!before_.empty()) {
    const bool worse = step > step_before_;
    std::vector<int> back = std::exchange(before_, {});
    if (worse) {
      windows_to_rest_ = rest_;
      rest_ = std::min(2 * rest_, kMostRest);
      return move_to(std::move(back));
    }
    rest_ = 1;
  }
  if (windows_to_rest_ > 0) {
    --windows_to_rest_;
    return false;
  }
  const std::vector<Pace> paces = this->paces();
  std::vector<int> better = balanced_counts(paces, shards_);
  if (slowest(paces, counts_) - slowest(paces, better) < kLeastGain * step) return false;
  before_ = counts_;
  step_before_ = step;
  return move_to(std::move(better));
}

bool ShardBalance::move_to(std::vector<int> counts) {
  counts_ = std::move(counts);
  spans_ = comm::spans_of_counts(counts_);
  steps_to_skip_ = 2;  // the next note tells of a step with the old shards, and in the one after the loader begins
  return true;
}

std::vector<Pace> ShardBalance::paces() const {
  std::vector<Pace> paces;
  for (std::size_t rank = 0; rank < counts_.size(); ++rank) {
    const Pace second{.round_seconds = 1, .lanes = lanes_[rank]};
    paces.push_back({median(window_.own[rank]) / second.seconds_for(counts_[rank]), lanes_[rank]});
  }
  return paces;
}

}  // namespace dtrain::train
