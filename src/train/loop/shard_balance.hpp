// Which rank computes which logical shards while a generation lasts: at first all equally many, later fewer on ranks
// that are slower. The bits stay the same, because the summation tree goes over shards and not over ranks.
//
// Each rank puts into its note of a step how long its own part of the step before took, without what it waited for
// others. All ranks get the same notes and decide by them alone, so all have the same shards without a further message.
// They decide once a window of steps is over, by the medians of the window. Shards move where that makes the slowest
// rank's part much shorter. If steps are no faster afterwards, they move back and rest for longer and longer: pieces of
// uneven spans are more numerous, so a slow network can cost what the ranks gain.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include <dtrain/comm/communicator.hpp>

namespace dtrain::train {

// How fast a rank computes shards: `lanes` of them at the same time, in one round.
struct Pace {
  double round_seconds = 0;
  int lanes = 1;
  double seconds_for(int shards) const { return round_seconds * std::ceil(static_cast<double>(shards) / lanes); }
};

// How many shards each rank gets, so that the slowest is done as early as possible; each has at least one. Needs as
// many shards as ranks.
std::vector<int> balanced_counts(std::span<const Pace> paces, int shards);

// What a rank tells of its last step.
struct StepTimes {
  std::chrono::microseconds own{0};   // loading and computing; 0: not measured
  std::chrono::microseconds step{0};  // from one step to the next
  int lanes = 1;
};
std::uint64_t word_of(const StepTimes& times);
StepTimes times_of(std::uint64_t word);

// One thread, the trainer's.
class ShardBalance {
 public:
  // `window`: how long at least the ranks watch before they decide.
  ShardBalance(int ranks, int shards, std::chrono::duration<double> window);
  const comm::ShardSpans& spans() const { return spans_; }
  // The times of all ranks, by rank, the same on all. True: spans() are others from the next step on.
  bool note(std::span<const StepTimes> times);

 private:
  struct Window {
    std::vector<std::vector<double>> own;  // [rank][step], seconds
    std::vector<double> step;              // [step] of rank 0
    double seconds = 0;                    // all steps together
  };
  bool decide();
  bool move_to(std::vector<int> counts);
  std::vector<Pace> paces() const;

  const int shards_;
  const double shortest_window_;
  std::vector<int> counts_;  // [rank]
  comm::ShardSpans spans_;
  std::vector<int> lanes_;  // [rank]
  Window window_;
  int steps_to_skip_;        // whose times belong to what was before
  std::vector<int> before_;  // the counts before the last move, while that is on trial
  double step_before_ = 0;   // and how long a step took then
  int windows_to_rest_ = 0, rest_ = 1;
};

}  // namespace dtrain::train
