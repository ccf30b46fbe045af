// A rank of a simulation: the thread that moves its frames, and the real schedule of its reduction.
#pragma once

#include <deque>
#include <vector>

#include "network.hpp"
#include "reduce_schedule.hpp"

namespace dtrain::comm::simulate {

// What all ranks share.
struct World {
  const ExchangeModel& model;
  const MergePlan& plan;
  const std::vector<Station>& stations;
  const std::vector<Bucket>& buckets;
  Events& events;
  Segments& segments;
  Network& network;
  std::vector<double> widths;  // [level]: bytes for each float of a node
  int host_of(int rank) const { return rank / model.ranks_per_host; }
};

class Rank {
 public:
  Rank(World& world, int rank);

  void start();
  void leaves_ready();                       // of the next bucket
  void deliver(std::uint32_t segment);       // it is in this rank's socket
  void acknowledged(std::uint32_t segment);  // one that this rank sent
  void thread_free();

  double completed_at() const { return completed_at_; }  // -1: it is not complete
  double busy() const { return busy_; }                  // seconds of the thread
  int rounds() const { return rounds_; }
  std::int64_t frames_sent() const { return frames_sent_; }

 private:
  // Frames in order, and how many of them are gone.
  struct Line {
    std::vector<ModelFrame> frames;
    std::size_t gone = 0;
    bool empty() const { return gone == frames.size(); }
    ModelFrame take();
  };
  struct Connection {
    Line frames;
    ModelFrame current;  // the frame of which a part was sent
    std::int64_t current_left = 0, in_flight = 0;
    std::uint32_t first = kNone, last = kNone;  // segments that came and were not read
    bool may_send = false;                      // it has output, and room for it
    bool has_output() const { return current_left > 0 || !frames.empty(); }
  };
  void begin_next();
  double next_task();
  void set_active(int peer, bool active);
  int next_active(int from) const;
  double begin_sending(int peer);
  double begin_receiving(std::uint32_t segment);
  double begin_taking_over(std::size_t bucket);
  void queue(int to, const ModelFrame& frame);
  void want_to_send(int peer);
  std::int64_t bytes_of_frame(const ModelFrame& frame) const;
  double carry_on(std::size_t bucket, int node, int owner);
  void send_sum(std::size_t bucket, int owner);
  std::uint8_t& rounds_of(std::size_t bucket, int owner);
  double cost_of(const Segment& segment) const;

  World& world_;
  ReduceSchedule schedule_;
  std::vector<Connection> connections_;  // [peer]
  // As in the real exchange: what was posted comes first; then the connections have their turns, each to send and then
  // to receive.
  std::deque<std::size_t> posted_;     // buckets
  std::vector<std::uint64_t> active_;  // a bit for each peer whose connection has something to do
  int turn_ = 0;                       // the peer that is next
  bool has_sent_ = false;              // in this turn
  bool is_busy_ = false;
  std::uint32_t outgoing_ = kNone;       // segment that leaves when the thread is free
  std::vector<std::uint8_t> rounds_of_;  // [bucket][owner]: of the frames that came for a chunk
  std::vector<int> own_nodes_;
  double seconds_of_leaves_ = 0;  // to add the leaves of this rank, for each float
  bool is_adding_leaves_ = false;
  std::size_t next_bucket_ = 0;
  std::int64_t frames_queued_ = 0, frames_sent_ = 0;
  double busy_ = 0, completed_at_ = -1;
  int rounds_ = 0;
};

}  // namespace dtrain::comm::simulate
