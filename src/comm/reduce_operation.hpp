// One reduction over the mesh. Every bucket is cut into a chunk for each rank, its owner. A rank sends the pieces that
// it has of a bucket to the owners; an owner adds a node once both children are there, left first, and sends the root's
// chunk to all ranks.
#pragma once

#include <vector>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/files.hpp>

#include "leaf_joiner.hpp"
#include "merge_plan.hpp"
#include "operation.hpp"
#include "wire.hpp"

namespace dtrain::comm {

class ReduceOperation final : public Operation {
 public:
  // `sum` holds shape.size floats and, where this rank has a leftmost piece, is its memory: a chunk of it is replaced
  // by the sum only after the chunk of the piece was sent or added. All must outlive this.
  ReduceOperation(Wire& wire, const MergePlan& plan, const std::vector<Bucket>& buckets, const ReductionShape& shape,
                  const Note& note, std::uint64_t sequence, float* sum, FloatPool& scratch);
  ~ReduceOperation() override;

  void add(const Piece& piece);  // of this rank; on the transport's thread
  std::vector<Note> notes() const;
  ByteView begin_bytes() const { return std::as_bytes(std::span(&begin_, 1)); }  // what its frame `begin` holds
  // The header of the frame with a node's chunk of a bucket, or with its sum; `bytes` is 0 where the owner has no
  // chunk.
  FrameHeader header_of(FrameKind kind, std::size_t bucket, int node, int owner) const;

  void start() override;
  std::optional<std::span<std::byte>> place(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header) override;
  bool needs(int peer) const override;
  bool is_complete() const override;
  std::vector<int> blamed() const override;

 private:
  // A node of a bucket, in this rank's chunk.
  struct Cell {
    float* values = nullptr;
    std::vector<float> memory;  // where values point, unless they are in a leaf
  };
  struct Peer {
    ReductionBegin begin;
    int pieces = 0, finals = 0;  // frames that have not arrived, `begin` counted as a piece
    std::vector<float> values;   // of the frame that is arriving
    std::vector<bfloat16_bits> narrow;
  };

  Chunk chunk(std::size_t bucket, int owner) const { return chunk_of(buckets_[bucket], owner, wire_.ranks()); }
  Cell& cell(std::size_t bucket, int node);
  std::span<std::byte> place_piece(int peer, const FrameHeader& header);
  std::span<std::byte> place_final(int peer, const FrameHeader& header);
  std::span<std::byte> room(Peer& peer, const Bucket& bucket, float* values, std::int64_t size);
  void check_begin(int peer) const;
  void join(std::size_t bucket, int node, Cell piece);
  void finish_chunk(std::size_t bucket, Cell root);
  void send_values(int to, const FrameHeader& header, const float* values, std::int64_t size);
  void send_to_others(FrameKind kind, std::size_t bucket, int node, const float* bucket_values);
  [[noreturn]] void refuse(int peer, const char* what) const;

  Wire& wire_;
  const MergePlan& plan_;
  const std::vector<Bucket>& buckets_;
  const ReductionBegin begin_;
  const std::uint64_t sequence_;
  float* const sum_;
  FloatPool& scratch_;
  std::int64_t largest_chunk_ = 0;  // floats, of this rank
  std::vector<Peer> peers_;
  std::vector<Cell> cells_;              // [bucket][node]
  std::vector<bool> seen_;               // [bucket][node]: the piece came
  std::vector<bool> summed_;             // [bucket][owner]: the final came
  std::vector<int> own_pieces_missing_;  // [bucket]
  int pieces_missing_ = 0;               // of this rank, all buckets
  int chunks_missing_ = 0;               // of this rank: not added up
};

}  // namespace dtrain::comm
