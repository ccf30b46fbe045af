// What happens in a simulation, by time, and in the order of its planning where times are equal.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>

namespace dtrain::bench {

class Timetable {
 public:
  double now() const { return now_; }
  void at(double time, std::function<void()> what) { queue_.push({std::max(time, now_), next_++, std::move(what)}); }
  void advance() {
    const Entry entry = queue_.top();
    queue_.pop();
    now_ = entry.time;
    entry.what();
  }

 private:
  struct Entry {
    double time = 0;
    std::uint64_t number = 0;
    std::function<void()> what;
    bool operator<(const Entry& other) const { return std::pair(time, number) > std::pair(other.time, other.number); }
  };
  double now_ = 0;
  std::uint64_t next_ = 0;
  std::priority_queue<Entry> queue_;
};

}  // namespace dtrain::bench
