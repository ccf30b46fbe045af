#include "rank.hpp"

#include <algorithm>
#include <utility>

namespace dtrain::comm::simulate {
namespace {

// What a connection takes before the other end has acknowledged it.
constexpr std::int64_t kWindow = 4 << 20;

}  // namespace

Rank::Rank(World& world, int rank)
    : world_(world),
      schedule_(world.plan, world.buckets, rank, world.model.ranks),
      connections_(static_cast<std::size_t>(world.model.ranks)),
      rounds_of_(world.buckets.size()) {
  const ShardSpan span = shards_of_rank(rank, world.model.ranks, world.model.shards);
  for (int node = 0; node < world.plan.pieces(); ++node) {
    if (world.plan[node].rank == rank) own_nodes_.push_back(node);
  }
  const auto additions = static_cast<double>(span.last - span.first) - static_cast<double>(own_nodes_.size());
  seconds_of_leaves_ = additions * sizeof(float) * world.model.host.add_byte;
}

void Rank::start() {
  const int ranks = schedule_.ranks();
  for (int step = 1; step < ranks; ++step) queue((schedule_.rank() + step) % ranks, {.kind = FrameKind::begin});
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
    add_task({Task::Kind::take_over, static_cast<std::uint32_t>(next_bucket_++)});
  }
}

void Rank::deliver(std::uint32_t segment) { add_task({Task::Kind::receive, segment}); }

void Rank::acknowledged(std::uint32_t number) {
  const Segment& segment = world_.segments[number];
  const int peer = static_cast<int>(segment.connection) % schedule_.ranks();
  connections_[static_cast<std::size_t>(peer)].in_flight -= segment.bytes;
  world_.segments.give(number);
  want_to_send(peer);
}

// ---- the thread

void Rank::add_task(Task task) {
  tasks_.push_back(task);
  if (!is_busy_) begin_next();
}

void Rank::begin_next() {
  if (tasks_.empty()) return;
  const Task task = tasks_.front();
  tasks_.pop_front();
  is_busy_ = true;
  double needed = 0;
  switch (task.kind) {
    case Task::Kind::send:
      needed = begin_sending(static_cast<int>(task.id));
      break;
    case Task::Kind::receive:
      needed = begin_receiving(task.id);
      break;
    case Task::Kind::take_over:
      needed = begin_taking_over(task.id);
      break;
  }
  busy_ += needed;
  world_.events.add(world_.events.now() + needed, EventKind::thread_free, static_cast<std::uint32_t>(schedule_.rank()));
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
  connection.has_task = false;
  outgoing_ = world_.segments.make();
  Segment& segment = world_.segments[outgoing_];
  segment.connection = static_cast<std::uint32_t>(schedule_.rank() * schedule_.ranks() + peer);
  segment.from = world_.host_of(schedule_.rank());
  segment.to = world_.host_of(peer);
  while (segment.bytes < kSegmentBytes && segment.count < kSegmentFrames && connection.has_output()) {
    if (connection.current_left == 0) {
      Line& line = connection.urgent.empty() ? connection.others : connection.urgent;
      connection.current = line.take();
      connection.current_left = bytes_of_frame(peer, connection.current);
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
    } else if (frame.kind == FrameKind::piece) {
      rounds_of_[frame.bucket] = std::max(rounds_of_[frame.bucket], frame.round);
      schedule_.have_piece(peer, frame.bucket, static_cast<int>(frame.node));
      needed += add_up(frame.bucket, static_cast<int>(frame.node));
    } else {
      schedule_.have_final(peer, frame.bucket);
    }
  }
  return needed;
}

double Rank::begin_taking_over(std::size_t bucket) {
  double needed = 0;
  for (const int node : own_nodes_) {
    schedule_.have_own_piece(bucket);
    schedule_.for_each_frame(FrameKind::piece, bucket, [&](int to, const Chunk&) {
      queue(to, {FrameKind::piece, static_cast<std::uint32_t>(bucket), static_cast<std::uint32_t>(node), 1});
    });
    if (schedule_.own_chunk(bucket).size > 0) needed += add_up(bucket, node);
  }
  return needed;
}

// ---- what the schedule decides

double Rank::add_up(std::size_t bucket, int node) {
  const auto bytes = static_cast<double>(schedule_.own_chunk(bucket).size) * sizeof(float);
  double needed = 0;
  while (const auto next = schedule_.join(bucket, node)) {
    needed += bytes * world_.model.host.add_byte;
    node = next->node;
  }
  if (schedule_.is_root(node)) {
    schedule_.have_sum_of_own_chunk();
    schedule_.for_each_frame(FrameKind::final, bucket, [&](int to, const Chunk&) {
      queue(to, {FrameKind::final, static_cast<std::uint32_t>(bucket), 0, rounds_of_[bucket] + 1});
    });
  }
  return needed;
}

void Rank::queue(int to, const ModelFrame& frame) {
  ++frames_queued_;
  Connection& connection = connections_[static_cast<std::size_t>(to)];
  (overtakes(frame.kind, FrameKind::piece) ? connection.urgent : connection.others).frames.push_back(frame);
  want_to_send(to);
}

void Rank::want_to_send(int peer) {
  Connection& connection = connections_[static_cast<std::size_t>(peer)];
  if (connection.has_task || !connection.has_output() || connection.in_flight >= kWindow) return;
  connection.has_task = true;
  add_task({Task::Kind::send, static_cast<std::uint32_t>(peer)});
}

std::int64_t Rank::bytes_of_frame(int to, const ModelFrame& frame) const {
  if (frame.kind == FrameKind::begin) return sizeof(FrameHeader) + sizeof(ReductionBegin);
  const int owner = frame.kind == FrameKind::piece ? to : schedule_.rank();
  const std::int64_t floats = schedule_.chunk(frame.bucket, owner).size;
  return static_cast<std::int64_t>(sizeof(FrameHeader) + bytes_of(world_.buckets[frame.bucket], floats));
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
