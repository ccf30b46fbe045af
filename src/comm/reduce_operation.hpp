// One reduction over the mesh: carries out what its schedule decides, with real floats and frames.
#pragma once

#include <deque>
#include <vector>

#include <dtrain/base/bfloat16.hpp>
#include <dtrain/base/files.hpp>

#include "leaf_joiner.hpp"
#include "operation.hpp"
#include "reduce_schedule.hpp"
#include "wire.hpp"

namespace dtrain::comm {

class ReduceOperation final : public Operation {
 public:
  // `sum` holds shape.size floats and, where this rank has a leftmost piece, is its memory: a chunk of it is replaced
  // by the sum only after the chunk of the piece was sent or added. All must outlive this.
  ReduceOperation(Wire& wire, const Station& station, const std::vector<Bucket>& buckets, const ReductionShape& shape,
                  const Note& note, std::uint64_t sequence, float* sum, FloatPool& scratch);
  ~ReduceOperation() override;

  void add(const Piece& piece);  // of this rank; on the transport's thread
  std::vector<Note> notes() const;
  ByteView begin_bytes() const { return std::as_bytes(std::span(&begin_, 1)); }  // what its frame `begin` holds
  // The header of the frame with a node of an owner's chunk of a bucket, or with its sum, that is not packed; `bytes`
  // is 0 where the owner has no chunk.
  FrameHeader header_of(FrameKind kind, std::size_t bucket, int node, int owner) const;

  void start() override;
  std::optional<std::span<std::byte>> place(int peer, const FrameHeader& header) override;
  void arrived(int peer, const FrameHeader& header) override;
  bool borrow(int peer, const FrameHeader& header, const std::byte* bytes) override;
  bool needs(int peer) const override { return schedule_.needs(peer); }
  bool is_complete() const override { return schedule_.is_complete(); }
  std::vector<int> blamed() const override { return schedule_.blamed(); }

 private:
  // A node of a chunk of a bucket.
  struct Cell {
    const float* values = nullptr;
    float* room = nullptr;    // the same, for their sum with another; none where they are borrowed
    FloatBuffer memory = {};  // where they are, unless in a leaf or borrowed
    int lender = -1;
  };
  // A frame that is arriving, or the memory of one that has arrived.
  struct Arrival {
    FrameHeader header;
    bool is_under_way = false;
    FloatBuffer values;  // of a piece
    std::vector<bfloat16_bits> narrow;
    std::vector<std::byte> packed;
  };
  struct Peer {
    ReductionBegin begin;
    bool has_begun = false;        // `begin` is here
    std::deque<Arrival> arrivals;  // one from each of its connections at a time
  };

  std::span<std::byte> place_piece(int peer, const FrameHeader& header);
  std::span<std::byte> place_final(int peer, const FrameHeader& header);
  Arrival& new_arrival(int peer, const FrameHeader& header);
  Arrival& take_arrival(int peer, const FrameHeader& header);
  std::span<std::byte> room(Arrival& arrival, float* values, std::int64_t size);
  void unfold(int peer, Arrival& arrival, float* values, std::int64_t size);
  int level_of(const FrameHeader& header) const;
  bool may_have(const FrameHeader& header, std::int64_t floats) const;
  void check_begin(int peer) const;
  void require_awaited(int peer, const FrameHeader& header) const;
  void carry_on(std::size_t bucket, int node, int owner, Cell piece);
  Cell add(std::size_t bucket, std::int64_t size, Cell left, Cell right, float* root);
  void release(Cell cell);
  void finish_chunk(std::size_t bucket, Cell root);
  void send_values(int to, const FrameHeader& header, const float* values, std::int64_t size);
  void send_sum(std::size_t bucket, int owner);
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
  std::vector<Cell> cells_;        // [cell of the schedule]: nodes whose sibling is not there
  std::vector<FloatBuffer> sent_;  // memory of nodes that were added here and sent on
};

}  // namespace dtrain::comm
