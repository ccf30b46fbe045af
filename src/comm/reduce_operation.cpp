#include "reduce_operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include <dtrain/base/error.hpp>

#include "arithmetic.hpp"
#include "packing.hpp"
#include "reduction_begin.hpp"

namespace dtrain::comm {
namespace {

bool is_same(const FrameHeader& a, const FrameHeader& b) {
  return a.kind == b.kind && a.bucket == b.bucket && a.node == b.node && a.owner == b.owner;
}

}  // namespace

ReduceOperation::ReduceOperation(Wire& wire, const Station& station, const std::vector<Bucket>& buckets,
                                 const ReductionShape& shape, const Note& note, std::uint64_t sequence, float* sum,
                                 FloatPool& scratch)
    : wire_(wire),
      plan_(station.plan()),
      buckets_(buckets),
      begin_(begin_of(shape, note)),
      sequence_(sequence),
      sum_(sum),
      scratch_(scratch),
      schedule_(station, buckets),
      peers_(static_cast<std::size_t>(wire.ranks())),
      cells_(schedule_.cells()) {
  Peer& own = peers_[static_cast<std::size_t>(wire_.rank())];
  own.begin = begin_;
  own.has_begun = true;
}

ReduceOperation::~ReduceOperation() {
  for (Cell& cell : cells_) scratch_.give(std::move(cell.memory));
  for (Peer& peer : peers_) {
    for (Arrival& arrival : peer.arrivals) scratch_.give(std::move(arrival.values));
  }
  for (FloatBuffer& memory : sent_) scratch_.give(std::move(memory));
}

std::vector<Note> ReduceOperation::notes() const {
  std::vector<Note> notes;
  for (const Peer& peer : peers_) notes.push_back(note_of(peer.begin));
  return notes;
}

void ReduceOperation::refuse(int peer, const char* what) const {
  throw PeerLost(fmt::format("{} sent {}", wire_.name_of(peer), what));
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
  schedule_.for_each_chunk(bucket, [&](int owner, const Chunk& part) {
    float* const values = piece.values + (part.first - buckets_[bucket].first);
    carry_on(bucket, node, owner, {.values = values, .room = values});
  });
}

FrameHeader ReduceOperation::header_of(FrameKind kind, std::size_t bucket, int node, int owner) const {
  return {.kind = kind,
          .node = static_cast<std::uint32_t>(node),
          .bucket = static_cast<std::uint32_t>(bucket),
          .owner = static_cast<std::uint32_t>(owner),
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
  if (!p.has_begun) return std::nullopt;  // the peer's begin is on the way, by another connection
  if (header.bucket >= buckets_.size()) refuse(peer, "a frame that cannot be");
  if (header.kind == FrameKind::piece) return place_piece(peer, header);
  if (header.kind == FrameKind::final) return place_final(peer, header);
  refuse(peer, "a frame that cannot be");
}

void ReduceOperation::require_awaited(int peer, const FrameHeader& header) const {
  const int node = static_cast<int>(header.node), owner = static_cast<int>(header.owner);
  if (!schedule_.awaits_piece(peer, header.bucket, node, owner) ||
      !may_have(header, schedule_.chunk(header.bucket, owner).size)) {
    refuse(peer, "a piece that cannot be");
  }
  if (schedule_.is_piece_seen(header.bucket, node, owner)) refuse(peer, "the same piece twice");
}

// What is no piece of plain floats of this operation goes the way of place(), which judges it.
bool ReduceOperation::borrow(int peer, const FrameHeader& header, const std::byte* bytes) {
  const bool is_plain_piece = header.kind == FrameKind::piece && header.sequence == sequence_ &&
                              peers_[static_cast<std::size_t>(peer)].has_begun && header.bucket < buckets_.size() &&
                              !buckets_[header.bucket].rounded && buckets_[header.bucket].packing == Packing::none;
  if (!is_plain_piece) return false;
  require_awaited(peer, header);
  const int node = static_cast<int>(header.node), owner = static_cast<int>(header.owner);
  schedule_.have_piece(peer, header.bucket, node, owner);
  carry_on(header.bucket, node, owner, {.values = reinterpret_cast<const float*>(bytes), .lender = peer});
  return true;
}

std::span<std::byte> ReduceOperation::place_piece(int peer, const FrameHeader& header) {
  require_awaited(peer, header);
  const int owner = static_cast<int>(header.owner);
  Arrival& arrival = new_arrival(peer, header);
  arrival.values = scratch_.take(schedule_.largest_chunk());
  return room(arrival, arrival.values.data(), schedule_.chunk(header.bucket, owner).size);
}

// The sum of a chunk needs this rank's pieces of it, so it cannot come while they are still in use.
std::span<std::byte> ReduceOperation::place_final(int peer, const FrameHeader& header) {
  const int owner = static_cast<int>(header.owner);
  if (!schedule_.awaits_final(peer, header.bucket, owner) ||
      !may_have(header, schedule_.chunk(header.bucket, owner).size) || !schedule_.has_all_own_pieces(header.bucket) ||
      schedule_.is_final_seen(owner, header.bucket)) {
    refuse(peer, "a sum that cannot be");
  }
  const Chunk theirs = schedule_.chunk(header.bucket, owner);
  return room(new_arrival(peer, header), sum_ + theirs.first, theirs.size);
}

ReduceOperation::Arrival& ReduceOperation::new_arrival(int peer, const FrameHeader& header) {
  std::deque<Arrival>& arrivals = peers_[static_cast<std::size_t>(peer)].arrivals;
  for (const Arrival& other : arrivals) {
    if (other.is_under_way && is_same(other.header, header)) refuse(peer, "the same frame twice");
  }
  const auto free = std::ranges::find(arrivals, false, &Arrival::is_under_way);
  Arrival& arrival = free != arrivals.end() ? *free : arrivals.emplace_back();
  arrival.header = header;
  arrival.is_under_way = true;
  return arrival;
}

ReduceOperation::Arrival& ReduceOperation::take_arrival(int peer, const FrameHeader& header) {
  std::deque<Arrival>& arrivals = peers_[static_cast<std::size_t>(peer)].arrivals;
  const auto found = std::ranges::find_if(
      arrivals, [&](const Arrival& arrival) { return arrival.is_under_way && is_same(arrival.header, header); });
  DTRAIN_CHECK(found != arrivals.end(), "a frame arrived that got no room");
  found->is_under_way = false;
  return *found;
}

std::span<std::byte> ReduceOperation::room(Arrival& arrival, float* values, std::int64_t size) {
  const Bucket& bucket = buckets_[arrival.header.bucket];
  if (bucket.packing != Packing::none) {
    arrival.packed.resize(arrival.header.bytes);
    return arrival.packed;
  }
  if (!bucket.rounded) return std::as_writable_bytes(std::span(values, static_cast<std::size_t>(size)));
  arrival.narrow.resize(static_cast<std::size_t>(size));
  return std::as_writable_bytes(std::span(arrival.narrow));
}

// What arrived in room(), as floats.
void ReduceOperation::unfold(int peer, Arrival& arrival, float* values, std::int64_t size) {
  const Bucket& bucket = buckets_[arrival.header.bucket];
  if (bucket.rounded) widen(values, arrival.narrow.data(), size);
  if (bucket.packing == Packing::none) return;
  if (!unpack(bucket.packing, level_of(arrival.header), arrival.packed, values, size)) {
    refuse(peer, "packed floats that cannot be");
  }
}

void ReduceOperation::arrived(int peer, const FrameHeader& header) {
  Peer& p = peers_[static_cast<std::size_t>(peer)];
  if (header.kind == FrameKind::begin) {
    if (std::exchange(p.has_begun, true)) refuse(peer, "a frame that cannot be");
    check_begin(peer);
    schedule_.have_begin(peer);
    return;
  }
  const int node = static_cast<int>(header.node), owner = static_cast<int>(header.owner);
  const Chunk part = schedule_.chunk(header.bucket, owner);
  Arrival& arrival = take_arrival(peer, header);
  if (header.kind == FrameKind::piece) {
    float* const values = arrival.values.data();
    unfold(peer, arrival, values, part.size);
    schedule_.have_piece(peer, header.bucket, node, owner);
    carry_on(header.bucket, node, owner, {.values = values, .room = values, .memory = std::move(arrival.values)});
  } else {
    unfold(peer, arrival, sum_ + part.first, part.size);
    schedule_.have_final(peer, header.bucket, owner);
    send_sum(header.bucket, owner);
  }
}

void ReduceOperation::check_begin(int peer) const {
  check_same_shape(begin_, peers_[static_cast<std::size_t>(peer)].begin, wire_.name_of(peer));
}

// ---- adding

// A node of an owner's chunk is here: it is added to its sibling, or waits for it, or goes to where it is added.
void ReduceOperation::carry_on(std::size_t bucket, int node, int owner, Cell piece) {
  const Chunk part = schedule_.chunk(bucket, owner);
  while (schedule_.adds(node, owner)) {
    if (schedule_.is_root(node)) return finish_chunk(bucket, std::move(piece));
    const auto next = schedule_.join(bucket, node, owner);
    if (!next) {
      cells_[schedule_.cell(bucket, node, owner)] = std::move(piece);
      return;
    }
    Cell sibling = std::exchange(cells_[schedule_.cell(bucket, plan_[node].sibling, owner)], {});
    if (next->left != node) std::swap(piece, sibling);
    piece = add(bucket, part.size, std::move(piece), std::move(sibling), next->is_root ? sum_ + part.first : nullptr);
    node = next->node;
  }
  send_values(schedule_.adder_of(node, owner), header_of(FrameKind::piece, bucket, node, owner), piece.values,
              part.size);
  if (!piece.memory.empty()) sent_.push_back(std::move(piece.memory));
}

// The sum of two siblings: at `root`, if there is one, else where one of them lies. What lies in a leaf of this rank is
// the first choice, so that the other's memory is free.
ReduceOperation::Cell ReduceOperation::add(std::size_t bucket, std::int64_t size, Cell left, Cell right, float* root) {
  const auto is_in_leaf = [](const Cell& cell) { return cell.room != nullptr && cell.memory.empty(); };
  const bool keeps_right = !is_in_leaf(left) && (is_in_leaf(right) || left.room == nullptr);
  Cell& kept = keeps_right ? right : left;
  Cell sum{.room = root != nullptr ? root : kept.room,
           .memory = root != nullptr ? FloatBuffer() : std::move(kept.memory)};
  if (sum.room == nullptr) {  // both are borrowed
    sum.memory = scratch_.take(schedule_.largest_chunk());
    sum.room = sum.memory.data();
  }
  sum.values = sum.room;
  wire_.reach(CommPoint::before_add);
  comm::add(sum.room, left.values, right.values, size, buckets_[bucket].rounded);
  wire_.reach(CommPoint::after_add);
  release(std::move(left));
  release(std::move(right));
  return sum;
}

void ReduceOperation::release(Cell cell) {
  scratch_.give(std::move(cell.memory));
  if (cell.lender >= 0) wire_.give_back(cell.lender);
}

void ReduceOperation::finish_chunk(std::size_t bucket, Cell root) {
  const Chunk mine = schedule_.chunk(bucket, wire_.rank());
  float* const sum = sum_ + mine.first;
  // With all shards on one rank its piece is the root.
  if (root.values != sum) std::memcpy(sum, root.values, static_cast<std::size_t>(mine.size) * sizeof(float));
  release(std::move(root));
  schedule_.have_sum_of_own_chunk();
  send_sum(bucket, wire_.rank());
}

// To those that get it from this rank.
void ReduceOperation::send_sum(std::size_t bucket, int owner) {
  const Chunk part = schedule_.chunk(bucket, owner);
  for (const int to : schedule_.receivers_of_sum(owner)) {
    send_values(to, header_of(FrameKind::final, bucket, 0, owner), sum_ + part.first, part.size);
  }
}

}  // namespace dtrain::comm
