// Links of a simulation: segments of connections leave a host in turn, travel, and enter the other host in order.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include <dtrain/comm/simulation.hpp>

#include "events.hpp"
#include "frames.hpp"

namespace dtrain::comm::simulate {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
// What a connection hands to the kernel at once, and a link sends before another connection has its turn. The smallest
// chunks of many ranks fit in.
constexpr std::int64_t kSegmentBytes = 20 << 10;
constexpr std::size_t kSegmentFrames = 4;

struct ModelFrame {
  FrameKind kind{};
  std::uint32_t bucket = 0, node = 0, owner = 0;
  std::uint32_t round = 0;  // 1 + the most frames that had to come before it
};

// Consecutive bytes of a connection.
struct Segment {
  std::uint32_t connection = 0, next = kNone;  // the one behind it, in the socket
  int from = 0, to = 0;                        // hosts
  std::int64_t bytes = 0;
  double sent = 0;                    // when its last byte left
  std::size_t count = 0;              // of the frames
  ModelFrame frames[kSegmentFrames];  // that end in it
};

// Memory of segments, by number.
class Segments {
 public:
  std::uint32_t make();
  void give(std::uint32_t number) { free_.push_back(number); }
  Segment& operator[](std::uint32_t number) { return all_[number]; }

 private:
  std::vector<Segment> all_;
  std::vector<std::uint32_t> free_;
};

class Network {
 public:
  Network(Events& events, Segments& segments, const LinkModel& link, int hosts, std::size_t connections);

  // It follows what its connection has in the socket; EventKind::delivered comes of it.
  void send(std::uint32_t segment);
  // Events that are the network's: link_free and at_link.
  void link_free(std::uint32_t host);
  void at_link(std::uint32_t segment);

  struct Load {
    double busy = 0;         // seconds
    std::int64_t bytes = 0;  // without headers of packets
  };
  const Load& sending(int host) const { return hosts_[static_cast<std::size_t>(host)].out; }
  const Load& receiving(int host) const { return hosts_[static_cast<std::size_t>(host)].in; }

 private:
  struct Socket {
    std::uint32_t first = kNone, last = kNone;  // segments
  };
  struct Host {
    bool is_sending = false;
    std::deque<std::uint32_t> waiting;  // connections with segments
    double receives_until = 0;
    Load out, in;
  };
  double seconds_for(std::int64_t bytes) const;
  std::size_t next_turn(const Host& host);
  void start(Host& host, std::uint32_t number);

  std::uint64_t draws_ = 0;
  Events& events_;
  Segments& segments_;
  const LinkModel link_;
  std::vector<Host> hosts_;
  std::vector<Socket> sockets_;  // [connection]
};

}  // namespace dtrain::comm::simulate
