// One reduction over the mesh: carries out what its schedule decides, with real floats and frames.
#pragma once

#include <vector>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/files.hpp>

#include "leaf_joiner.hpp"
#include "merge_plan.hpp"
#include "operation.hpp"
#include "reduce_schedule.hpp"
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
  // The header of the frame with a node's chunk of a bucket, or with its sum, that is not packed; `bytes` is 0 where
  // the owner has no chunk.
  FrameHeader header_of(FrameKind kind, std::size_t bucket, int node, int owner) const;

  void start() override;
  std::optional<std::span<std::byte>> place(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header) override;
  bool needs(int peer) const override { return schedule_.needs(peer); }
  bool is_complete() const override { return schedule_.is_complete(); }
  std::vector<int> blamed() const override { return schedule_.blamed(); }

 private:
  // A node of a bucket, in this rank's chunk.
  struct Cell {
    float* values = nullptr;
    std::vector<float> memory;  // where values point, unless they are in a leaf
  };
  struct Peer {
    ReductionBegin begin;
    std::vector<float> values;  // of the frame that is arriving
    std::vector<bfloat16_bits> narrow;
    std::vector<std::byte> packed;
  };

  Cell& cell(std::size_t bucket, int node);
  std::span<std::byte> place_piece(int peer, const FrameHeader& header);
  std::span<std::byte> place_final(int peer, const FrameHeader& header);
  std::span<std::byte> room(Peer& peer, const FrameHeader& header, float* values, std::int64_t size);
  void unfold(int peer, const FrameHeader& header, float* values, std::int64_t size);
  int level_of(const FrameHeader& header) const;
  bool may_have(const FrameHeader& header, std::int64_t floats) const;
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
  ReduceSchedule schedule_;
  std::vector<Peer> peers_;
  std::vector<Cell> cells_;  // [bucket][node]: of nodes whose sibling is not there
};

}  // namespace dtrain::comm
