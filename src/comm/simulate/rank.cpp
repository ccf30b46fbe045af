#include "rank.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::comm::simulate {
namespace {

// What a connection takes before the other end has acknowledged it.
constexpr std::int64_t kWindow = 4 << 20;

}  // namespace

Rank::Rank(World& world, int rank)
    : world_(world),
      schedule_(world.stations[static_cast<std::size_t>(rank)], world.buckets),
      connections_(static_cast<std::size_t>(world.model.ranks)),
      active_((connections_.size() + 63) / 64),
      turn_(peer_of_step(rank, 1, world.model.ranks)),
      rounds_of_(world.buckets.size() * connections_.size()) {
  const ShardSpan span = shards_of_rank(rank, world.model.ranks, world.model.shards);
  const MergePlan& plan = world.plan;
  for (int node = 0; node < plan.pieces(); ++node) {
    if (plan[node].rank == rank) own_nodes_.push_back(node);
  }
  const auto additions = static_cast<double>(span.last - span.first) - static_cast<double>(own_nodes_.size());
  seconds_of_leaves_ = additions * sizeof(float) * world.model.host.add_byte;
}

void Rank::start() {
  const int ranks = schedule_.ranks();
  for (int step = 1; step < ranks; ++step)
    queue(peer_of_step(schedule_.rank(), step, ranks), {.kind = FrameKind::begin});
  leaves_ready();
}

// The leaves of a rank are added to each other on a thread that computes, bucket by bucket.
void Rank::leaves_ready() {
  while (next_bucket_ < world_.buckets.size()) {
    const double needed = seconds_of_leaves_ * static_cast<double>(world_.buckets[next_bucket_].size);
    if (needed > 0 && !is_adding_leaves_) {
      is_adding_leaves_ = true;
      return world_.events.add(world_.events.now() + needed, EventKind::leaves_ready,
                               static_cast<std::uint32_t>(schedule_.rank()));
    }
    is_adding_leaves_ = false;
    posted_.push_back(next_bucket_++);
    begin_next();
  }
}

void Rank::deliver(std::uint32_t number) {
  const int peer = static_cast<int>(world_.segments[number].connection) / schedule_.ranks();
  Connection& connection = connections_[static_cast<std::size_t>(peer)];
  world_.segments[number].next = kNone;
  (connection.first == kNone ? connection.first : world_.segments[connection.last].next) = number;
  connection.last = number;
  set_active(peer, true);
  begin_next();
}

void Rank::acknowledged(std::uint32_t number) {
  const Segment& segment = world_.segments[number];
  const int peer = static_cast<int>(segment.connection) % schedule_.ranks();
  connections_[static_cast<std::size_t>(peer)].in_flight -= segment.bytes;
  world_.segments.give(number);
  want_to_send(peer);
  begin_next();
}

// ---- the thread

void Rank::begin_next() {
  if (is_busy_) return;
  if (posted_.empty() && next_active(turn_) < 0) return;
  is_busy_ = true;
  const double needed = next_task();
  busy_ += needed;
  world_.events.add(world_.events.now() + needed, EventKind::thread_free, static_cast<std::uint32_t>(schedule_.rank()));
}

double Rank::next_task() {
  if (!posted_.empty()) {
    const std::size_t bucket = posted_.front();
    posted_.pop_front();
    return begin_taking_over(bucket);
  }
  while (true) {
    const int peer = next_active(turn_);
    DTRAIN_CHECK(peer >= 0, "a task is sought where there is one");
    if (peer != turn_) has_sent_ = false;
    turn_ = peer;
    Connection& connection = connections_[static_cast<std::size_t>(peer)];
    if (connection.may_send && !has_sent_) {
      has_sent_ = true;
      return begin_sending(peer);
    }
    turn_ = peer_of_step(peer, 1, schedule_.ranks());
    has_sent_ = false;
    if (connection.first == kNone) continue;
    const std::uint32_t segment = connection.first;
    connection.first = world_.segments[segment].next;
    set_active(peer, connection.may_send || connection.first != kNone);
    return begin_receiving(segment);
  }
}

void Rank::set_active(int peer, bool active) {
  std::uint64_t& word = active_[static_cast<std::size_t>(peer) / 64];
  const std::uint64_t bit = std::uint64_t{1} << (peer % 64);
  word = active ? word | bit : word & ~bit;
}

// The first one from `from` on, and on from 0; -1: none.
int Rank::next_active(int from) const {
  const std::size_t words = active_.size(), start = static_cast<std::size_t>(from) / 64;
  for (std::size_t step = 0; step <= words; ++step) {
    const std::size_t at = (start + step) % words;
    std::uint64_t word = active_[at];
    const std::uint64_t before = (std::uint64_t{1} << (from % 64)) - 1;  // bits of peers below `from`
    if (step == 0) word &= ~before;
    if (step == words) word &= before;
    if (word != 0) return static_cast<int>(64 * at) + std::countr_zero(word);
  }
  return -1;
}

void Rank::thread_free() {
  is_busy_ = false;
  if (outgoing_ != kNone) {
    frames_queued_ -= static_cast<std::int64_t>(world_.segments[outgoing_].count);
    world_.network.send(std::exchange(outgoing_, kNone));
  }
  if (completed_at_ < 0 && frames_queued_ == 0 && schedule_.is_complete()) completed_at_ = world_.events.now();
  begin_next();
}

double Rank::begin_sending(int peer) {
  Connection& connection = connections_[static_cast<std::size_t>(peer)];
  outgoing_ = world_.segments.make();
  Segment& segment = world_.segments[outgoing_];
  segment.connection = static_cast<std::uint32_t>(schedule_.rank() * schedule_.ranks() + peer);
  segment.from = world_.host_of(schedule_.rank());
  segment.to = world_.host_of(peer);
  while (segment.bytes < kSegmentBytes && segment.count < kSegmentFrames && connection.has_output()) {
    if (connection.current_left == 0) {
      connection.current = connection.frames.take();
      connection.current_left = bytes_of_frame(connection.current);
    }
    const std::int64_t part = std::min(connection.current_left, kSegmentBytes - segment.bytes);
    segment.bytes += part;
    connection.current_left -= part;
    if (connection.current_left == 0) segment.frames[segment.count++] = connection.current;
  }
  frames_sent_ += static_cast<std::int64_t>(segment.count);
  connection.in_flight += segment.bytes;
  want_to_send(peer);
  return cost_of(segment);
}

// The acknowledgement leaves at once and takes no part of a link.
double Rank::begin_receiving(std::uint32_t number) {
  world_.events.add(world_.events.now() + world_.model.link.latency, EventKind::acknowledged, number);
  const Segment& segment = world_.segments[number];
  const int peer = static_cast<int>(segment.connection) / schedule_.ranks();
  double needed = cost_of(segment);
  for (std::size_t i = 0; i < segment.count; ++i) {
    const ModelFrame& frame = segment.frames[i];
    rounds_ = std::max(rounds_, static_cast<int>(frame.round));
    if (frame.kind == FrameKind::begin) {
      schedule_.have_begin(peer);
      continue;
    }
    const int node = static_cast<int>(frame.node), owner = static_cast<int>(frame.owner);
    std::uint8_t& rounds = rounds_of(frame.bucket, owner);
    rounds = std::max(rounds, static_cast<std::uint8_t>(frame.round));
    if (frame.kind == FrameKind::piece) {
      schedule_.have_piece(peer, frame.bucket, node, owner);
      needed += carry_on(frame.bucket, node, owner);
    } else {
      schedule_.have_final(peer, frame.bucket, owner);
      send_sum(frame.bucket, owner);
    }
  }
  return needed;
}

double Rank::begin_taking_over(std::size_t bucket) {
  double needed = 0;
  for (const int node : own_nodes_) {
    schedule_.have_own_piece(bucket);
    schedule_.for_each_chunk(bucket, [&](int owner, const Chunk&) { needed += carry_on(bucket, node, owner); });
  }
  return needed;
}

// ---- what the schedule decides

double Rank::carry_on(std::size_t bucket, int node, int owner) {
  const auto bytes = static_cast<double>(schedule_.chunk(bucket, owner).size) * sizeof(float);
  double needed = 0;
  while (schedule_.adds(node, owner)) {
    if (schedule_.is_root(node)) {
      schedule_.have_sum_of_own_chunk();
      send_sum(bucket, owner);
      return needed;
    }
    const auto next = schedule_.join(bucket, node, owner);
    if (!next) return needed;
    needed += bytes * world_.model.host.add_byte;
    node = next->node;
  }
  queue(schedule_.adder_of(node, owner),
        {FrameKind::piece, static_cast<std::uint32_t>(bucket), static_cast<std::uint32_t>(node),
         static_cast<std::uint32_t>(owner), rounds_of(bucket, owner) + 1U});
  return needed;
}

void Rank::send_sum(std::size_t bucket, int owner) {
  for (const int to : schedule_.receivers_of_sum(owner)) {
    queue(to, {FrameKind::final, static_cast<std::uint32_t>(bucket), 0, static_cast<std::uint32_t>(owner),
               rounds_of(bucket, owner) + 1U});
  }
}

std::uint8_t& Rank::rounds_of(std::size_t bucket, int owner) {
  return rounds_of_[bucket * connections_.size() + static_cast<std::size_t>(owner)];
}

void Rank::queue(int to, const ModelFrame& frame) {
  ++frames_queued_;
  Connection& connection = connections_[static_cast<std::size_t>(to)];
  connection.frames.frames.push_back(frame);
  want_to_send(to);
}

void Rank::want_to_send(int peer) {
  Connection& connection = connections_[static_cast<std::size_t>(peer)];
  connection.may_send = connection.has_output() && connection.in_flight < kWindow;
  set_active(peer, connection.may_send || connection.first != kNone);
}

std::int64_t Rank::bytes_of_frame(const ModelFrame& frame) const {
  if (frame.kind == FrameKind::begin) return sizeof(FrameHeader) + sizeof(ReductionBegin);
  const auto floats = static_cast<double>(schedule_.chunk(frame.bucket, static_cast<int>(frame.owner)).size);
  const bool is_root = frame.kind == FrameKind::final;
  const std::size_t level = is_root ? world_.widths.size() - 1
                                    : static_cast<std::size_t>(world_.plan[static_cast<int>(frame.node)].node.level);
  return static_cast<std::int64_t>(sizeof(FrameHeader)) + static_cast<std::int64_t>(floats * world_.widths[level]);
}

double Rank::cost_of(const Segment& segment) const {
  const HostModel& host = world_.model.host;
  return static_cast<double>(segment.count) * host.frame + static_cast<double>(segment.bytes) * host.byte;
}

ModelFrame Rank::Line::take() {
  const ModelFrame frame = frames[gone++];
  if (empty()) {
    frames.clear();
    gone = 0;
  }
  return frame;
}

}  // namespace dtrain::comm::simulate
