// What happens next in a simulation: events by time, and in the order of their creation where times are equal.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

namespace dtrain::comm::simulate {

enum class EventKind : std::uint32_t { link_free, at_link, delivered, acknowledged, leaves_ready, thread_free };

struct Event {
  double at = 0;
  std::uint64_t order = 0;
  EventKind kind{};
  std::uint32_t id = 0;  // host, segment or rank, by kind
  friend bool operator<(const Event& a, const Event& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }
};

class Events {
 public:
  double now() const { return now_; }
  bool empty() const { return queue_.empty(); }
  void add(double at, EventKind kind, std::uint32_t id) { queue_.push({at, order_++, kind, id}); }
  Event next() {
    const Event event = queue_.top();
    queue_.pop();
    now_ = event.at;
    return event;
  }

 private:
  double now_ = 0;
  std::uint64_t order_ = 0;
  std::priority_queue<Event> queue_;  // the earliest on top
};

}  // namespace dtrain::comm::simulate
