#include "routes.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace dtrain::comm {
namespace {

std::size_t at(int number) { return static_cast<std::size_t>(number); }

int lowest_bit(int number) { return number & -number; }

// Ranks that exchange in rounds: as many as the greatest power of two by which their number can be divided.
int block_size(Way way, int ranks) { return way == Way::direct ? 1 : lowest_bit(ranks); }

// What is the same for all owners.
struct Family {
  Family(const MergePlan& plan, Way way)
      : left(plan.nodes().size(), -1), height(plan.nodes().size()), block(plan.nodes().size(), -1) {
    for (std::size_t node = 0; node < left.size(); ++node) {  // children come before their parents
      const MergeNode& here = plan.nodes()[node];
      if (here.rank >= 0) block[node] = here.rank / block_size(way, plan.ranks());
      if (left[node] >= 0) {
        const std::size_t a = at(left[node]), b = at(plan[left[node]].sibling);
        block[node] = block[a] == block[b] ? block[a] : -1;
        height[node] = std::max(height[a], height[b]) + 1;
      }
      if (here.parent >= 0 && is_left(here.node)) left[at(here.parent)] = static_cast<int>(node);
    }
  }
  std::vector<int> left;    // child; -1: a piece
  std::vector<int> height;  // how many times its leaves were joined
  std::vector<int> block;   // of all its leaves; -1: of several
};

// The rank of a node that is a piece; -1: it is none.
int computer_of(const MergePlan& plan, int node) { return node < 0 ? -1 : plan[node].rank; }

// Between blocks the owner itself adds. Within a block one of the holders of both children stays the holder: the owner,
// or the one that has the node's sibling too, or else the one that the owner's number chooses, so that different chunks
// have different holders.
int choose(const MergePlan& plan, const Family& family, int node, int left, int right, int owner) {
  if (left == owner || right == owner || family.block[at(node)] < 0) return owner;
  const int beside = computer_of(plan, plan[node].sibling);
  if (beside == left || beside == right) return beside;
  return (owner >> (family.height[at(node)] - 1)) & 1 ? right : left;
}

std::vector<int> holders_of(const MergePlan& plan, const Family& family, int owner) {
  std::vector<int> holders(plan.nodes().size());
  for (std::size_t node = 0; node < holders.size(); ++node) {
    const int left = family.left[node], number = static_cast<int>(node);
    if (left < 0) {
      holders[node] = plan[number].rank;
    } else if (plan[number].parent < 0) {
      holders[node] = owner;
    } else {
      holders[node] = choose(plan, family, number, holders[at(left)], holders[at(plan[left].sibling)], owner);
    }
  }
  return holders;
}

// Within a block the sum goes to the rank whose number differs in one bit. Between blocks, whose number is odd, it goes
// a power of two of blocks further. Far ranks come first, and every rank sends as many chunks as any other.
std::vector<Passing> ways_of_sum(Way way, int ranks, int owner) {
  const int block = block_size(way, ranks), blocks = ranks / block;
  struct Step {
    Passing passing;
    int distance;  // greater: more ranks get it from this one
  };
  std::vector<Step> steps;
  for (int rank = 0; rank < ranks; ++rank) {
    const int inside = (rank ^ owner) & (block - 1), apart = (rank / block - owner / block + blocks) % blocks;
    const int round = std::popcount(static_cast<unsigned>(inside)) + std::popcount(static_cast<unsigned>(apart));
    if (inside != 0) {
      steps.push_back({{rank ^ lowest_bit(inside), rank, round}, lowest_bit(inside)});
    } else if (apart != 0 && way == Way::direct) {
      // The right neighbour comes first, so that not all owners begin with the same rank.
      steps.push_back({{owner, rank, 1}, ranks - apart});
    } else if (apart != 0) {
      const int from = (owner / block + apart - lowest_bit(apart)) % blocks;
      steps.push_back({{from * block + rank % block, rank, round}, lowest_bit(apart) * block});
    }
  }
  std::ranges::stable_sort(steps, std::greater(), &Step::distance);
  std::vector<Passing> sums;
  for (const Step& step : steps) sums.push_back(step.passing);
  return sums;
}

Route trace_route(const MergePlan& plan, const Family& family, Way way, int owner) {
  return {holders_of(plan, family, owner), ways_of_sum(way, plan.ranks(), owner)};
}

}  // namespace

Way way_of(const ReductionShape& shape, bool ranks_share_hosts) {
  constexpr std::int64_t kFewFloats = 1 << 20;
  return shape.size < kFewFloats && !ranks_share_hosts ? Way::direct : Way::halving;
}

Route route_of(const MergePlan& plan, Way way, int owner) { return trace_route(plan, Family(plan, way), way, owner); }

template <typename StationOf>
void Station::spread(const MergePlan& plan, Way way, const StationOf& station_of) {
  const Family family(plan, way);
  for (int owner = 0; owner < plan.ranks(); ++owner) {
    const Route route = trace_route(plan, family, way, owner);
    for (std::size_t node = 0; node < route.holders.size(); ++node) {
      const int parent = plan.nodes()[node].parent;
      const Stop stop{static_cast<int>(node), route.holders[node], parent < 0 ? owner : route.holders[at(parent)]};
      if (Station* here = station_of(stop.holder)) here->chunks_[at(owner)].stops.push_back(stop);
      if (stop.adder == stop.holder) continue;
      if (Station* here = station_of(stop.adder)) here->chunks_[at(owner)].stops.push_back(stop);
    }
    for (const Passing& sum : route.sums) {
      if (Station* here = station_of(sum.from)) here->chunks_[at(owner)].receivers.push_back(sum.to);
      if (Station* here = station_of(sum.to)) {
        here->chunks_[at(owner)].sender = sum.from;
        here->chunks_[at(owner)].round = sum.round;
      }
    }
  }
}

Station::Station(const MergePlan& plan, int rank, Empty) : plan_(&plan), rank_(rank), chunks_(at(plan.ranks())) {}

Station::Station(const MergePlan& plan, Way way, int rank) : Station(plan, rank, Empty{}) {
  spread(plan, way, [&](int other) { return other == rank_ ? this : nullptr; });
  number_stops();
}

std::vector<Station> Station::of_all_ranks(const MergePlan& plan, Way way) {
  std::vector<Station> stations;
  for (int rank = 0; rank < plan.ranks(); ++rank) stations.push_back(Station(plan, rank, Empty{}));
  spread(plan, way, [&](int rank) { return &stations[at(rank)]; });
  for (Station& station : stations) station.number_stops();
  return stations;
}

void Station::number_stops() {
  for (Chunk& chunk : chunks_) {
    chunk.first = stop_count_;
    stop_count_ += chunk.stops.size();
  }
}

const Station::Stop* Station::find(int node, int owner) const {
  const std::vector<Stop>& list = stops(owner);
  const auto found = std::ranges::lower_bound(list, node, {}, &Stop::node);
  return found != list.end() && found->node == node ? &*found : nullptr;
}

std::size_t Station::number_of(const Stop& stop, int owner) const {
  return chunks_[at(owner)].first + static_cast<std::size_t>(&stop - stops(owner).data());
}

const Station& LastRoute::station(ShardSpans spans, Way way) {
  if (!route_ || route_->spans != spans || route_->way != way) {
    route_ = std::make_unique<RankRoute>(std::move(spans), way, rank_);
  }
  return route_->station;
}

}  // namespace dtrain::comm
