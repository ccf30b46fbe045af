#include "network.hpp"

#include <algorithm>

namespace dtrain::comm::simulate {
namespace {

// TCP with time stamps over Ethernet of 1,500 bytes: headers, check sum, preamble and gap.
constexpr double kPacketPayload = 1448, kPacketHeaders = 90;

// SplitMix64: well mixed bits of a counter, as a number from 0 to 1.
double fraction_of(std::uint64_t counter) {
  std::uint64_t x = (counter + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>((x ^ (x >> 31)) >> 11) / static_cast<double>(std::uint64_t{1} << 53);
}

}  // namespace

std::uint32_t Segments::make() {
  if (free_.empty()) {
    all_.emplace_back();
    return static_cast<std::uint32_t>(all_.size() - 1);
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  all_[number] = {};
  return number;
}

Network::Network(Events& events, Segments& segments, const LinkModel& link, int hosts, std::size_t connections)
    : events_(events),
      segments_(segments),
      link_(link),
      hosts_(static_cast<std::size_t>(hosts)),
      sockets_(connections) {}

// A connection fills its packets from one segment to the next.
double Network::seconds_for(std::int64_t bytes) const {
  const double packets = std::max(1.0, static_cast<double>(bytes) / kPacketPayload);
  return (static_cast<double>(bytes) + packets * kPacketHeaders) / link_.bytes_per_second;
}

void Network::send(std::uint32_t number) {
  Segment& segment = segments_[number];
  if (segment.from == segment.to) return events_.add(events_.now(), EventKind::delivered, number);
  Socket& socket = sockets_[segment.connection];
  const bool was_empty = socket.first == kNone;
  if (was_empty) {
    socket.first = number;
  } else {
    segments_[socket.last].next = number;
  }
  socket.last = number;
  if (!was_empty) return;
  Host& host = hosts_[static_cast<std::size_t>(segment.from)];
  host.waiting.push_back(segment.connection);
  if (!host.is_sending) link_free(static_cast<std::uint32_t>(segment.from));
}

void Network::link_free(std::uint32_t number) {
  Host& host = hosts_[number];
  host.is_sending = !host.waiting.empty();
  if (!host.is_sending) return;
  std::swap(host.waiting[next_turn(host)], host.waiting.front());
  const std::uint32_t connection = host.waiting.front();
  host.waiting.pop_front();
  Socket& socket = sockets_[connection];
  const std::uint32_t segment = socket.first;
  socket.first = segments_[segment].next;
  if (socket.first != kNone) host.waiting.push_back(connection);
  start(host, segment);
}

// Its place among those that wait.
std::size_t Network::next_turn(const Host& host) {
  if (link_.unevenness == 0) return 0;
  while (true) {
    const auto place = static_cast<std::size_t>(fraction_of(++draws_) * static_cast<double>(host.waiting.size()));
    const double weight = 1 - link_.unevenness * fraction_of(host.waiting[place]);
    if (fraction_of(++draws_) < weight) return place;
  }
}

void Network::start(Host& host, std::uint32_t number) {
  Segment& segment = segments_[number];
  const double needed = seconds_for(segment.bytes);
  host.out.busy += needed;
  host.out.bytes += segment.bytes;
  segment.sent = events_.now() + needed;
  events_.add(segment.sent, EventKind::link_free, static_cast<std::uint32_t>(segment.from));
  events_.add(events_.now() + link_.latency, EventKind::at_link, number);
}

// Its first byte is at the receiver's link: it may enter while its last bytes are still on their way.
void Network::at_link(std::uint32_t number) {
  const Segment& segment = segments_[number];
  Host& host = hosts_[static_cast<std::size_t>(segment.to)];
  const double needed = seconds_for(segment.bytes);
  host.in.busy += needed;
  host.in.bytes += segment.bytes;
  host.receives_until = std::max(std::max(events_.now(), host.receives_until) + needed, segment.sent + link_.latency);
  events_.add(host.receives_until, EventKind::delivered, number);
}

}  // namespace dtrain::comm::simulate
