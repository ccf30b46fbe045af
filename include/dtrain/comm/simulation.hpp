// How long a reduction takes on machines that are not there: a discrete-event simulation that runs the schedule of the
// real exchange (src/comm/reduce_schedule.hpp) on modelled links and hosts. Pure: the same case gives the same result.
//
// Links: every host has one full-duplex link to a switch that never blocks. A link sends the segments of its
// connections in turn, so connections that share it get equal parts, or unequal ones as TCP's windows make them; what
// arrives is served in order of arrival. Packets carry headers. Nothing is lost: slow start, retransmissions and full
// buffers of a switch are not modelled.
// Hosts: each rank has the one thread that moves frames and adds, as in the real exchange.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/comm/communicator.hpp>

namespace dtrain::comm {

struct LinkModel {
  double bytes_per_second = 0;  // in each direction, headers of packets included
  double latency = 0;           // seconds from one host to another
  // How unequal the parts are that connections have of the link that they leave by: each has its own weight, from
  // 1 - unevenness to 1, and turns go at random by weight. 0: the connections have their turns one after the other.
  double unevenness = 0;
};

// Seconds of the thread that moves a rank's frames.
struct HostModel {
  double frame = 0;     // for each frame that it sends, and for each that it receives
  double byte = 0;      // for each byte that it sends, and for each that it receives
  double add_byte = 0;  // for each byte of a sum that it adds
};

struct ExchangeModel {
  int ranks = 0;
  int shards = 0;           // at least `ranks`, a power of two
  std::int64_t floats = 0;  // that are added up, of each shard
  bool rounded = false;     // to bfloat16
  Packing packing = Packing::none;
  double density = 1;      // sparse: the share of a leaf's floats that are not 0, at other places in each shard
  int ranks_per_host = 1;  // they share the link of their host
  LinkModel link{};
  HostModel host{};
};

struct SimulatedStep {
  double seconds = 0;             // from all leaves being ready to the sum being on every rank
  double ring_bytes = 0;          // what each link of a ring of these ranks carries in each direction, without headers
  double ring_seconds = 0;        // the least time for them, without latency
  double busiest_link_bytes = 0;  // in one direction, headers of frames included and those of packets not
  int rounds = 0;                 // the most frames that had to wait for one another
  std::int64_t frames = 0;        // that all ranks send together
  enum class Limit { latency, sending, receiving, thread };
  Limit limit = Limit::latency;  // what was busy for the greatest part of the time
  int limit_at = -1;             // host of that link, rank of that thread; -1: latency
  double limit_share = 0;        // of the time

  double ring_ratio() const { return seconds / ring_seconds; }
  double byte_ratio() const { return busiest_link_bytes / ring_bytes; }
};

// Throws UsageError for a case that cannot be: fewer than two ranks, more ranks than shards, no bandwidth.
SimulatedStep simulate_reduction(const ExchangeModel& model);

// Bytes that travel on a connection of their own, from the start on.
struct SimulatedTransfer {
  int from = 0, to = 0;  // hosts
  std::int64_t bytes = 0;
};
// When the last byte of each arrives; without the time of any host.
std::vector<double> simulate_transfers(const LinkModel& link, int hosts,
                                       const std::vector<SimulatedTransfer>& transfers);

}  // namespace dtrain::comm
