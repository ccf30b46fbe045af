// What one rank sends, awaits and adds in a reduction over the mesh, as decisions alone: no floats, no sockets, no
// clock. ReduceOperation acts on them with real frames, the simulation with modelled ones.
//
// Every bucket is cut into chunks, each of which has a rank as its owner. A node of a chunk is added to its sibling,
// left first, by the rank that the routes name. What a rank holds and does not add itself it sends to that rank. The
// root is the owner's, from where the sum goes to all ranks.
#pragma once

#include <optional>
#include <vector>

#include "buckets.hpp"
#include "frames.hpp"
#include "routes.hpp"

namespace dtrain::comm {

// node = left + right, in a chunk of a bucket.
struct Addition {
  int left = -1, right = -1, node = -1;
  bool is_root = false;
};

class ReduceSchedule {
 public:
  // `station` must outlive this.
  ReduceSchedule(const Station& station, const std::vector<Bucket>& buckets);

  int rank() const { return station_.rank(); }
  int ranks() const { return station_.ranks(); }
  Chunk chunk(std::size_t bucket, int owner) const { return owners_.chunk(bucket, owner); }
  std::int64_t largest_chunk() const { return largest_chunk_; }  // floats, of those that this rank adds up

  // visit(owner, chunk) for each chunk of a bucket that is not empty. Each rank begins with its right neighbour's, so
  // that not all send to the same one.
  template <typename Visit>
  void for_each_chunk(std::size_t bucket, const Visit& visit) const {
    for (int step = 1; step <= ranks(); ++step) {
      const int owner = peer_of_step(rank(), step, ranks());
      if (const Chunk part = chunk(bucket, owner); part.size > 0) visit(owner, part);
    }
  }
  // The rank where a node of an owner's chunk that this rank holds is added.
  int adder_of(int node, int owner) const;
  bool adds(int node, int owner) const { return adder_of(node, owner) == rank(); }
  // To whom this rank, which has it, sends the sum of an owner's chunk.
  const std::vector<int>& receivers_of_sum(int owner) const { return station_.receivers_of_sum(owner); }

  // Whether a peer may send such a frame; all numbers may be wrong.
  bool awaits_piece(int peer, std::size_t bucket, int node, int owner) const;
  bool awaits_final(int peer, std::size_t bucket, int owner) const;

  // ---- what has come about

  void have_own_piece(std::size_t bucket);
  void have_begin(int peer);
  void have_piece(int peer, std::size_t bucket, int node, int owner);
  void have_final(int peer, std::size_t bucket, int owner);
  // A node that this rank adds is there, in an owner's chunk: the addition that it makes possible. nullopt: it waits
  // for its sibling, or is the root.
  std::optional<Addition> join(std::size_t bucket, int node, int owner);
  bool is_root(int node) const { return plan_[node].parent < 0; }
  void have_sum_of_own_chunk();

  // ---- what is awaited

  bool is_piece_seen(std::size_t bucket, int node, int owner) const { return seen_[cell(bucket, node, owner)]; }
  bool is_final_seen(int owner, std::size_t bucket) const { return summed_[bucket * peers_.size() + index(owner)]; }
  bool has_all_own_pieces(std::size_t bucket) const { return own_pieces_missing_[bucket] == 0; }
  bool needs(int peer) const;
  bool is_complete() const { return pieces_missing_ == 0 && chunks_missing_ == 0 && frames_missing_ == 0; }
  // Ranks that it waits for: those that have not sent what they computed come first, since they hold up the sums of
  // others too, then those that have not sent what they added.
  std::vector<int> blamed() const;

  // A number for each node of a chunk of a bucket that stops at this rank, below cells().
  std::size_t cells() const { return seen_.size(); }
  std::size_t cell(std::size_t bucket, int node, int owner) const;

 private:
  struct Peer {
    int computed = 0, added = 0, finals = 0;  // frames that have not arrived; `begin` counts as computed
  };
  static std::size_t index(int number) { return static_cast<std::size_t>(number); }
  int& missing_from(int peer, int node);

  const Station& station_;
  const MergePlan& plan_;
  const Owners owners_;
  std::int64_t largest_chunk_ = 0;
  std::vector<Peer> peers_;
  std::vector<bool> seen_;               // [cell]: the piece came
  std::vector<bool> waiting_;            // [cell]: there, and its sibling is not
  std::vector<bool> summed_;             // [bucket][owner]: the final came
  std::vector<int> own_pieces_missing_;  // [bucket]
  std::int64_t pieces_missing_ = 0;      // of this rank, all buckets
  std::int64_t frames_missing_ = 0;      // of all peers
  int chunks_missing_ = 0;               // of this rank: not added up
};

}  // namespace dtrain::comm
