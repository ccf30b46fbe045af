// Which ranks a chunk of a reduction passes, on its way up the tree and back: pure decisions, alike on all ranks.
//
// Every node of the tree has a holder for each owner's chunk: the rank where the node's floats come about. Of a piece
// that is the rank that computed it. A node that two others make is held by one of their holders or by the owner, so
// that a chunk travels once for each piece. The sum comes back by doubling: in each round all ranks that have it send
// it to as many others, and every rank sends as much as any other.
//
// With a power of two of ranks this is recursive halving and doubling (Thakur, Rabenseifner and Gropp, "Optimization of
// Collective Communication Operations in MPICH", 2005): in round k all ranks exchange with the rank whose number
// differs in bit k. So each link has one sender and one receiver at a time, a rank has few busy connections, and ranks
// of one host, whose numbers are neighbours, add up among themselves before anything leaves it. Its sums are those of
// the tree, because a round adds two neighbouring nodes. Another number of ranks is divided into blocks of a power of
// two: each block does the same, and sends what it has added up to the owner directly.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <dtrain/comm/communicator.hpp>

#include "merge_plan.hpp"

namespace dtrain::comm {

enum class Way {
  halving,  // as above
  direct    // all pieces to the owner, and its sum to all: two rounds, and as many busy connections as ranks
};
// Few bytes take the latency of the rounds more than they take of a link, but not where ranks share a host's link.
Way way_of(const ReductionShape& shape, bool ranks_share_hosts);

struct Passing {
  int from = -1, to = -1;  // ranks
  int round = 0;           // 1: from the owner
};
// Of one owner's chunk.
struct Route {
  std::vector<int> holders;   // [node]; of a root that is no piece: the owner
  std::vector<Passing> sums;  // the ways of the sum, in the order in which a rank sends: every rank gets it once
};
Route route_of(const MergePlan& plan, Way way, int owner);

// What the routes of all chunks ask of one rank.
class Station {
 public:
  // A node that comes about here, is added here, or both.
  struct Stop {
    int node = -1;
    int holder = -1;  // where it comes about
    int adder = -1;   // where it is added to its sibling; of the root: the owner
  };

  // `plan` must outlive this.
  Station(const MergePlan& plan, Way way, int rank);
  static std::vector<Station> of_all_ranks(const MergePlan& plan, Way way);

  const MergePlan& plan() const { return *plan_; }
  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(chunks_.size()); }
  // Of an owner's chunk.
  const std::vector<Stop>& stops(int owner) const { return chunks_[index(owner)].stops; }
  int sender_of_sum(int owner) const { return chunks_[index(owner)].sender; }  // of the own chunk: -1
  int round_of_sum(int owner) const { return chunks_[index(owner)].round; }    // in which it comes; of the own chunk: 0
  const std::vector<int>& receivers_of_sum(int owner) const { return chunks_[index(owner)].receivers; }
  // nullptr: the node does not stop here.
  const Stop* find(int node, int owner) const;
  // A number for each stop, below stop_count().
  std::size_t number_of(const Stop& stop, int owner) const;
  std::size_t stop_count() const { return stop_count_; }

 private:
  struct Chunk {
    std::vector<Stop> stops;  // by node
    std::size_t first = 0;    // number of the first stop
    int sender = -1, round = 0;
    std::vector<int> receivers;
  };
  struct Empty {};
  Station(const MergePlan& plan, int rank, Empty);
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  void number_stops();
  // station_of(rank): nullptr where it is not wanted.
  template <typename StationOf>
  static void spread(const MergePlan& plan, Way way, const StationOf& station_of);

  const MergePlan* plan_;
  int rank_;
  std::vector<Chunk> chunks_;  // [owner]
  std::size_t stop_count_ = 0;
};

// A rank's station, with what it rests on.
struct RankRoute {
  RankRoute(ShardSpans all, Way the_way, int rank)
      : spans(std::move(all)), way(the_way), plan(spans), station(plan, way, rank) {}
  RankRoute(const RankRoute&) = delete;
  const ShardSpans spans;
  const Way way;
  const MergePlan plan;
  const Station station;
};

// A rank's route of the last reduction, which the next one usually takes too.
class LastRoute {
 public:
  explicit LastRoute(int rank) : rank_(rank) {}
  // Valid until the next call.
  const Station& station(ShardSpans spans, Way way);

 private:
  const int rank_;
  std::unique_ptr<RankRoute> route_;
};

}  // namespace dtrain::comm
