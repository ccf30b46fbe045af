#include "reduce_operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <dtrain/base/error.hpp>

#include "arithmetic.hpp"
#include "packing.hpp"
#include "reduction_begin.hpp"

namespace dtrain::comm {
ReduceOperation::ReduceOperation(Wire& wire, const MergePlan& plan, const std::vector<Bucket>& buckets,
                                 const ReductionShape& shape, const Note& note, std::uint64_t sequence, float* sum,
                                 FloatPool& scratch)
    : wire_(wire),
      plan_(plan),
      buckets_(buckets),
      begin_(begin_of(shape, note)),
      sequence_(sequence),
      sum_(sum),
      scratch_(scratch),
      schedule_(plan, buckets, wire.rank(), wire.ranks()),
      peers_(static_cast<std::size_t>(wire.ranks())),
      cells_(buckets.size() * plan.nodes().size()) {
  peers_[static_cast<std::size_t>(wire_.rank())].begin = begin_;
}

ReduceOperation::~ReduceOperation() {
  for (Cell& cell : cells_) scratch_.give(std::move(cell.memory));
  for (Peer& peer : peers_) scratch_.give(std::move(peer.values));
}

std::vector<Note> ReduceOperation::notes() const {
  std::vector<Note> notes;
  for (const Peer& peer : peers_) notes.push_back(note_of(peer.begin));
  return notes;
}

void ReduceOperation::refuse(int peer, const char* what) const {
  throw PeerLost(fmt::format("{} sent {}", wire_.name_of(peer), what));
}

ReduceOperation::Cell& ReduceOperation::cell(std::size_t bucket, int node) {
  return cells_[bucket * plan_.nodes().size() + static_cast<std::size_t>(node)];
}

// ---- sending

void ReduceOperation::start() {
  for (int peer = 0; peer < wire_.ranks(); ++peer) {
    if (peer == wire_.rank()) continue;
    const FrameHeader header{.kind = FrameKind::begin, .sequence = sequence_, .bytes = sizeof begin_};
    wire_.send(peer, {header, begin_bytes().data()});
  }
}

void ReduceOperation::add(const Piece& piece) {
  const auto bucket = static_cast<std::size_t>(piece.bucket);
  const int node = plan_.number_of_piece(piece.node);
  schedule_.have_own_piece(bucket);
  send_to_others(FrameKind::piece, bucket, node, piece.values);
  const Chunk mine = schedule_.own_chunk(bucket);
  if (mine.size > 0) join(bucket, node, {piece.values + (mine.first - buckets_[bucket].first), {}});
}

void ReduceOperation::send_to_others(FrameKind kind, std::size_t bucket, int node, const float* bucket_values) {
  schedule_.for_each_frame(kind, bucket, [&](int to, const Chunk& part) {
    send_values(to, header_of(kind, bucket, node, kind == FrameKind::piece ? to : wire_.rank()),
                bucket_values + (part.first - buckets_[bucket].first), part.size);
  });
}

FrameHeader ReduceOperation::header_of(FrameKind kind, std::size_t bucket, int node, int owner) const {
  return {.kind = kind,
          .node = static_cast<std::uint32_t>(node),
          .bucket = static_cast<std::uint32_t>(bucket),
          .sequence = sequence_,
          .bytes = travelling_bytes(buckets_[bucket], schedule_.chunk(bucket, owner).size)};
}

void ReduceOperation::send_values(int to, const FrameHeader& header, const float* values, std::int64_t size) {
  Outgoing frame{header, reinterpret_cast<const std::byte*>(values)};
  const Bucket& bucket = buckets_[header.bucket];
  if (bucket.rounded) {
    frame.owned.resize(header.bytes);
    narrow(reinterpret_cast<bfloat16_bits*>(frame.owned.data()), values, size);
    frame.bytes = frame.owned.data();
  } else if (bucket.packing != Packing::none) {
    frame.owned = pack(bucket.packing, level_of(header), values, size);
    frame.header.bytes = frame.owned.size();
    frame.bytes = frame.owned.data();
  }
  wire_.send(to, std::move(frame));
}

// Of the node whose floats the frame holds.
int ReduceOperation::level_of(const FrameHeader& header) const {
  const int node =
      header.kind == FrameKind::final ? static_cast<int>(plan_.nodes().size()) - 1 : static_cast<int>(header.node);
  return plan_[node].node.level;
}

// ---- receiving

bool ReduceOperation::may_have(const FrameHeader& header, std::int64_t floats) const {
  const Bucket& bucket = buckets_[header.bucket];
  if (bucket.packing == Packing::none) return header.bytes == travelling_bytes(bucket, floats);
  return packed_sizes(bucket.packing, level_of(header), floats).has(header.bytes);
}

std::optional<std::span<std::byte>> ReduceOperation::place(int peer, const FrameHeader& header) {
  if (header.sequence > sequence_ || header.kind == FrameKind::message) return std::nullopt;
  if (header.sequence < sequence_) refuse(peer, "a frame of an operation that is over");
  Peer& p = peers_[static_cast<std::size_t>(peer)];
  if (header.kind == FrameKind::begin) {
    if (header.bytes != sizeof p.begin || p.begin.shards != 0) refuse(peer, "a frame that cannot be");
    return std::as_writable_bytes(std::span(&p.begin, 1));
  }
  if (header.kind == FrameKind::gather) refuse(peer, "bytes for all_gather() while this rank reduces");
  if (p.begin.shards == 0 || header.bucket >= buckets_.size()) refuse(peer, "a frame that cannot be");
  if (header.kind == FrameKind::piece) return place_piece(peer, header);
  if (header.kind == FrameKind::final) return place_final(peer, header);
  refuse(peer, "a frame that cannot be");
}

std::span<std::byte> ReduceOperation::place_piece(int peer, const FrameHeader& header) {
  const Chunk mine = schedule_.own_chunk(header.bucket);
  if (header.node >= static_cast<std::uint32_t>(plan_.pieces()) || plan_[static_cast<int>(header.node)].rank != peer ||
      mine.size == 0 || !may_have(header, mine.size)) {
    refuse(peer, "a piece that cannot be");
  }
  if (schedule_.is_piece_seen(header.bucket, static_cast<int>(header.node))) refuse(peer, "the same piece twice");
  Peer& p = peers_[static_cast<std::size_t>(peer)];
  p.values = scratch_.take(schedule_.largest_chunk());
  return room(p, header, p.values.data(), mine.size);
}

// The sum of a chunk needs this rank's pieces of it, so it cannot come while they are still in use.
std::span<std::byte> ReduceOperation::place_final(int peer, const FrameHeader& header) {
  const Chunk theirs = schedule_.chunk(header.bucket, peer);
  if (theirs.size == 0 || !may_have(header, theirs.size) || !schedule_.has_all_own_pieces(header.bucket) ||
      schedule_.is_final_seen(peer, header.bucket)) {
    refuse(peer, "a sum that cannot be");
  }
  return room(peers_[static_cast<std::size_t>(peer)], header, sum_ + theirs.first, theirs.size);
}

std::span<std::byte> ReduceOperation::room(Peer& peer, const FrameHeader& header, float* values, std::int64_t size) {
  const Bucket& bucket = buckets_[header.bucket];
  if (bucket.packing != Packing::none) {
    peer.packed.resize(header.bytes);
    return peer.packed;
  }
  if (!bucket.rounded) return std::as_writable_bytes(std::span(values, static_cast<std::size_t>(size)));
  peer.narrow.resize(static_cast<std::size_t>(size));
  return std::as_writable_bytes(std::span(peer.narrow));
}

// What arrived in room(), as floats.
void ReduceOperation::unfold(int peer, const FrameHeader& header, float* values, std::int64_t size) {
  Peer& p = peers_[static_cast<std::size_t>(peer)];
  const Bucket& bucket = buckets_[header.bucket];
  if (bucket.rounded) widen(values, p.narrow.data(), size);
  if (bucket.packing == Packing::none) return;
  if (!unpack(bucket.packing, level_of(header), p.packed, values, size)) refuse(peer, "packed floats that cannot be");
}

void ReduceOperation::arrived(int peer, const FrameHeader& header) {
  Peer& p = peers_[static_cast<std::size_t>(peer)];
  if (header.kind == FrameKind::begin) {
    check_begin(peer);
    schedule_.have_begin(peer);
  } else if (header.kind == FrameKind::piece) {
    const Chunk mine = schedule_.own_chunk(header.bucket);
    unfold(peer, header, p.values.data(), mine.size);
    schedule_.have_piece(peer, header.bucket, static_cast<int>(header.node));
    float* const values = p.values.data();
    join(header.bucket, static_cast<int>(header.node), {values, std::move(p.values)});
  } else {
    const Chunk theirs = schedule_.chunk(header.bucket, peer);
    unfold(peer, header, sum_ + theirs.first, theirs.size);
    schedule_.have_final(peer, header.bucket);
  }
}

void ReduceOperation::check_begin(int peer) const {
  check_same_shape(begin_, peers_[static_cast<std::size_t>(peer)].begin, wire_.name_of(peer));
}

// ---- adding

void ReduceOperation::join(std::size_t bucket, int node, Cell piece) {
  const Chunk mine = schedule_.own_chunk(bucket);
  while (const auto next = schedule_.join(bucket, node)) {
    Cell sibling = std::exchange(cell(bucket, plan_[node].sibling), {});
    Cell& left = next->left == node ? piece : sibling;
    Cell& right = next->left == node ? sibling : piece;
    float* const out = next->is_root ? sum_ + mine.first : left.values;
    wire_.reach(CommPoint::before_add);
    comm::add(out, left.values, right.values, mine.size, buckets_[bucket].rounded);
    wire_.reach(CommPoint::after_add);
    scratch_.give(std::move(right.memory));
    if (next->is_root) scratch_.give(std::move(left.memory));
    piece = {out, std::move(left.memory)};
    node = next->node;
  }
  if (schedule_.is_root(node)) {
    finish_chunk(bucket, std::move(piece));
  } else {
    cell(bucket, node) = std::move(piece);
  }
}

void ReduceOperation::finish_chunk(std::size_t bucket, Cell root) {
  const Chunk mine = schedule_.own_chunk(bucket);
  float* const sum = sum_ + mine.first;
  // With all shards on one rank its piece is the root.
  if (root.values != sum) std::memcpy(sum, root.values, static_cast<std::size_t>(mine.size) * sizeof(float));
  scratch_.give(std::move(root.memory));
  schedule_.have_sum_of_own_chunk();
  send_to_others(FrameKind::final, bucket, 0, sum_ + buckets_[bucket].first);
}

}  // namespace dtrain::comm
