// What one rank sends, awaits and adds in a reduction over the mesh, as decisions alone: no floats, no sockets, no
// clock. ReduceOperation acts on them with real frames, the simulation with modelled ones.
//
// Every bucket is cut into chunks, each of which has a rank as its owner. A rank sends its pieces of a bucket to the
// owners; an owner adds a node once both children are there, left first, and sends the root's chunk to all ranks.
#pragma once

#include <optional>
#include <vector>

#include "buckets.hpp"
#include "frames.hpp"
#include "merge_plan.hpp"

namespace dtrain::comm {

// node = left + right, in this rank's chunk of a bucket.
struct Addition {
  int left = -1, right = -1, node = -1;
  bool is_root = false;
};

class ReduceSchedule {
 public:
  // `plan` must outlive this.
  ReduceSchedule(const MergePlan& plan, const std::vector<Bucket>& buckets, int rank, int ranks);

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(peers_.size()); }
  Chunk chunk(std::size_t bucket, int owner) const { return owners_.chunk(bucket, owner); }
  Chunk own_chunk(std::size_t bucket) const { return chunk(bucket, rank_); }
  std::int64_t largest_chunk() const { return largest_chunk_; }  // floats, of this rank

  // send(to, chunk) for each frame with a piece or with the sum of a bucket, in order. A piece goes chunk by chunk to
  // the owners, a sum whole to all ranks. Each rank begins with its right neighbour, so that not all send to the same
  // one.
  template <typename Send>
  void for_each_frame(FrameKind kind, std::size_t bucket, const Send& send) const {
    for (int step = 1; step < ranks(); ++step) {
      const int to = peer_of_step(rank_, step, ranks());
      const Chunk part = chunk(bucket, kind == FrameKind::piece ? to : rank_);
      if (part.size > 0) send(to, part);
    }
  }

  // ---- what has come about

  void have_own_piece(std::size_t bucket);
  void have_begin(int peer);
  void have_piece(int peer, std::size_t bucket, int node);
  void have_final(int peer, std::size_t bucket);
  // A node of this rank's chunk is there: the addition that it makes possible. nullopt: it waits for its sibling, or is
  // the root, whose chunk is then to be sent.
  std::optional<Addition> join(std::size_t bucket, int node);
  bool is_root(int node) const { return plan_[node].parent < 0; }
  void have_sum_of_own_chunk();

  // ---- what is awaited

  bool is_piece_seen(std::size_t bucket, int node) const { return seen_[bucket * nodes() + index(node)]; }
  bool is_final_seen(int owner, std::size_t bucket) const { return summed_[bucket * peers_.size() + index(owner)]; }
  bool has_all_own_pieces(std::size_t bucket) const { return own_pieces_missing_[bucket] == 0; }
  bool needs(int peer) const { return peers_[index(peer)].pieces > 0 || peers_[index(peer)].finals > 0; }
  bool is_complete() const { return pieces_missing_ == 0 && chunks_missing_ == 0 && frames_missing_ == 0; }
  // Ranks that it waits for; those that have not sent their pieces first, since they hold up the sums of others too.
  std::vector<int> blamed() const;

 private:
  struct Peer {
    int pieces = 0, finals = 0;  // frames that have not arrived, `begin` counted as a piece
  };
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  std::size_t nodes() const { return plan_.nodes().size(); }

  const MergePlan& plan_;
  const Owners owners_;
  const int rank_;
  std::int64_t largest_chunk_ = 0;
  std::vector<Peer> peers_;
  std::vector<bool> seen_;               // [bucket][node]: the piece came
  std::vector<bool> waiting_;            // [bucket][node]: there, and its sibling is not
  std::vector<bool> summed_;             // [bucket][owner]: the final came
  std::vector<int> own_pieces_missing_;  // [bucket]
  std::int64_t pieces_missing_ = 0;      // of this rank, all buckets
  std::int64_t frames_missing_ = 0;      // of all peers
  int chunks_missing_ = 0;               // of this rank: not added up
};

}  // namespace dtrain::comm
