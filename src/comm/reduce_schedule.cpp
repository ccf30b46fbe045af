#include "reduce_schedule.hpp"

#include <algorithm>

namespace dtrain::comm {

ReduceSchedule::ReduceSchedule(const MergePlan& plan, const std::vector<Bucket>& buckets, int rank, int ranks)
    : plan_(plan),
      owners_(buckets, ranks),
      rank_(rank),
      peers_(index(ranks)),
      seen_(buckets.size() * plan.nodes().size()),
      waiting_(buckets.size() * plan.nodes().size()),
      summed_(buckets.size() * peers_.size()),
      own_pieces_missing_(buckets.size(), plan.pieces_of(rank)) {
  pieces_missing_ = std::int64_t{plan_.pieces_of(rank)} * static_cast<std::int64_t>(buckets.size());
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::int64_t mine = own_chunk(b).size;
    largest_chunk_ = std::max(largest_chunk_, mine);
    chunks_missing_ += mine > 0;
  }
  for (const MergeNode& node : plan_.nodes()) {
    if (node.rank >= 0 && node.rank != rank) peers_[index(node.rank)].pieces += chunks_missing_;
  }
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    Peer& p = peers_[index(peer)];
    ++p.pieces;
    for (std::size_t b = 0; b < buckets.size(); ++b) p.finals += chunk(b, peer).size > 0;
    frames_missing_ += p.pieces + p.finals;
  }
}

void ReduceSchedule::have_own_piece(std::size_t bucket) {
  --pieces_missing_;
  --own_pieces_missing_[bucket];
}

void ReduceSchedule::have_begin(int peer) {
  --peers_[index(peer)].pieces;
  --frames_missing_;
}

void ReduceSchedule::have_piece(int peer, std::size_t bucket, int node) {
  seen_[bucket * nodes() + index(node)] = true;
  --peers_[index(peer)].pieces;
  --frames_missing_;
}

void ReduceSchedule::have_final(int peer, std::size_t bucket) {
  summed_[bucket * peers_.size() + index(peer)] = true;
  --peers_[index(peer)].finals;
  --frames_missing_;
}

std::optional<Addition> ReduceSchedule::join(std::size_t bucket, int node) {
  const MergeNode& here = plan_[node];
  if (here.parent < 0) return std::nullopt;
  const auto sibling = waiting_.begin() + static_cast<std::ptrdiff_t>(bucket * nodes() + index(here.sibling));
  if (!*sibling) {
    waiting_[bucket * nodes() + index(node)] = true;
    return std::nullopt;
  }
  *sibling = false;
  const bool left = is_left(here.node);
  return Addition{.left = left ? node : here.sibling,
                  .right = left ? here.sibling : node,
                  .node = here.parent,
                  .is_root = is_root(here.parent)};
}

void ReduceSchedule::have_sum_of_own_chunk() { --chunks_missing_; }

std::vector<int> ReduceSchedule::blamed() const {
  std::vector<int> late;
  for (const auto missing : {&Peer::pieces, &Peer::finals}) {
    for (std::size_t peer = 0; peer < peers_.size(); ++peer) {
      if (peers_[peer].*missing > 0) late.push_back(static_cast<int>(peer));
    }
    if (!late.empty()) break;
  }
  return late;
}

}  // namespace dtrain::comm
