#include "reduce_schedule.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::comm {

ReduceSchedule::ReduceSchedule(const Station& station, const std::vector<Bucket>& buckets)
    : station_(station),
      plan_(station.plan()),
      owners_(buckets, station.ranks()),
      peers_(index(station.ranks())),
      seen_(buckets.size() * station.stop_count()),
      waiting_(seen_.size()),
      summed_(buckets.size() * peers_.size()),
      own_pieces_missing_(buckets.size(), plan_.pieces_of(station.rank())) {
  pieces_missing_ = std::int64_t{plan_.pieces_of(rank())} * static_cast<std::int64_t>(buckets.size());
  for (int owner = 0; owner < ranks(); ++owner) {
    int filled = 0;  // buckets where the owner has a chunk
    std::int64_t largest = 0;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      const std::int64_t floats = chunk(b, owner).size;
      filled += floats > 0;
      largest = std::max(largest, floats);
    }
    if (owner == rank()) chunks_missing_ = filled;
    if (owner != rank()) peers_[index(station.sender_of_sum(owner))].finals += filled;
    for (const Station::Stop& stop : station.stops(owner)) {
      if (stop.adder != rank()) continue;
      largest_chunk_ = std::max(largest_chunk_, largest);
      if (stop.holder != rank()) missing_from(stop.holder, stop.node) += filled;
    }
  }
  for (int peer = 0; peer < ranks(); ++peer) {
    Peer& p = peers_[index(peer)];
    if (peer != rank()) ++p.computed;
    frames_missing_ += p.computed + p.added + p.finals;
  }
}

int& ReduceSchedule::missing_from(int peer, int node) {
  Peer& p = peers_[index(peer)];
  return plan_[node].rank >= 0 ? p.computed : p.added;
}

int ReduceSchedule::adder_of(int node, int owner) const {
  const Station::Stop* const stop = station_.find(node, owner);
  DTRAIN_CHECK(stop != nullptr, "a node that this rank holds stops here");
  return stop->adder;
}

std::size_t ReduceSchedule::cell(std::size_t bucket, int node, int owner) const {
  const Station::Stop* const stop = station_.find(node, owner);
  DTRAIN_CHECK(stop != nullptr, "a node that this rank adds stops here");
  return bucket * station_.stop_count() + station_.number_of(*stop, owner);
}

bool ReduceSchedule::awaits_piece(int peer, std::size_t bucket, int node, int owner) const {
  if (owner < 0 || owner >= ranks() || peer == rank()) return false;
  const Station::Stop* const stop = station_.find(node, owner);
  return stop != nullptr && stop->holder == peer && stop->adder == rank() && chunk(bucket, owner).size > 0;
}

bool ReduceSchedule::awaits_final(int peer, std::size_t bucket, int owner) const {
  return owner >= 0 && owner < ranks() && owner != rank() && station_.sender_of_sum(owner) == peer &&
         chunk(bucket, owner).size > 0;
}

void ReduceSchedule::have_own_piece(std::size_t bucket) {
  --pieces_missing_;
  --own_pieces_missing_[bucket];
}

void ReduceSchedule::have_begin(int peer) {
  --peers_[index(peer)].computed;
  --frames_missing_;
}

void ReduceSchedule::have_piece(int peer, std::size_t bucket, int node, int owner) {
  seen_[cell(bucket, node, owner)] = true;
  --missing_from(peer, node);
  --frames_missing_;
}

void ReduceSchedule::have_final(int peer, std::size_t bucket, int owner) {
  summed_[bucket * peers_.size() + index(owner)] = true;
  --peers_[index(peer)].finals;
  --frames_missing_;
}

std::optional<Addition> ReduceSchedule::join(std::size_t bucket, int node, int owner) {
  const MergeNode& here = plan_[node];
  if (here.parent < 0) return std::nullopt;
  const std::size_t sibling = cell(bucket, here.sibling, owner);
  if (!waiting_[sibling]) {
    waiting_[cell(bucket, node, owner)] = true;
    return std::nullopt;
  }
  waiting_[sibling] = false;
  const bool left = is_left(here.node);
  return Addition{.left = left ? node : here.sibling,
                  .right = left ? here.sibling : node,
                  .node = here.parent,
                  .is_root = is_root(here.parent)};
}

void ReduceSchedule::have_sum_of_own_chunk() { --chunks_missing_; }

bool ReduceSchedule::needs(int peer) const {
  const Peer& p = peers_[index(peer)];
  return p.computed > 0 || p.added > 0 || p.finals > 0;
}

std::vector<int> ReduceSchedule::blamed() const {
  std::vector<int> late;
  for (const auto missing : {&Peer::computed, &Peer::added, &Peer::finals}) {
    for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
      if (peers_[peer].*missing > 0) late.push_back(static_cast<int>(peer));
    }
    if (!late.empty()) break;
  }
  return late;
}

}  // namespace dtrain::comm
