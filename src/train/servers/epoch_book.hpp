// Who has which samples of an epoch, and how far each worker is: pure, without clock, thread or socket. The server of
// the first shard keeps it.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/train/plan.hpp>

namespace dtrain::train {

// One batch of an epoch. Its number counts batches of the plan from the epoch's begin, also where they are shifted.
struct Ticket {
  std::uint64_t number = 0;
  data::Slice slice;
};

struct BookPlan {
  EpochPlan epoch;
  std::uint64_t position = 0;       // all samples before it are trained
  std::set<std::uint64_t> ahead{};  // numbers of batches behind it that are trained too
  std::uint64_t most = UINT64_MAX;  // batches of this section
  int ranks = 1;
  std::optional<int> max_staleness = {};  // nullopt: no limit; 0: each batch is shared by all ranks
  bool shares() const { return max_staleness == 0; }
};

class EpochBook {
 public:
  explicit EpochBook(const BookPlan& plan);

  // The next batch of a rank; nullopt: none is left. With shared batches each rank gets all of them, in order.
  std::optional<Ticket> take(int rank);
  // Whether the rank may begin its next step: no other rank that still has steps to make is too far behind.
  bool may_begin(int rank) const;
  // The rank has pushed the gradients of a batch.
  void pushed(int rank);
  // Each worker that had the batch knows that all servers have its gradients.
  void done(int rank, std::uint64_t number);
  // No further batch is given out, except those before one that is trained already.
  void stop();
  // The rank has nothing more to do.
  void finish(int rank) { finished_.insert(rank); }
  bool is_over() const { return std::ssize(finished_) == plan_.ranks; }

  const std::set<std::uint64_t>& done() const { return done_; }  // of this section
  // Where an epoch stands when these are trained, too.
  struct Standing {
    std::uint64_t position = 0;
    std::set<std::uint64_t> ahead{};
    std::uint64_t batches = 0;  // from the plan's position to this one
  };
  static Standing standing(const BookPlan& plan, const std::set<std::uint64_t>& done);
  // The samples of a batch that is not before the plan's position.
  static data::Slice slice(const BookPlan& plan, std::uint64_t number);

 private:
  const BookPlan plan_;
  std::vector<Ticket> todo_;                   // of the section, in order
  std::vector<std::size_t> next_;              // of each rank in todo_; where batches are not shared, only the first
  std::vector<std::uint64_t> clocks_, taken_;  // by rank: pushes, and batches that it was given
  std::map<std::uint64_t, std::set<int>> by_;  // ranks that are done with a shared batch
  std::set<int> idle_, finished_;              // ranks to which no batch was left; that have nothing more to do
  std::set<std::uint64_t> done_;
};

}  // namespace dtrain::train
