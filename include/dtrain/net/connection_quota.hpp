// Which open connection goes when another one comes, so that strangers cannot keep members out of a port. Pure: no
// socket, no clock, no thread; the caller gives all times and closes what has to go.
#pragma once

#include <chrono>
#include <cstddef>
#include <list>
#include <string>

namespace dtrain::net {

// Silent connections go first, and among them the oldest one of the address that has the most: a crowd of strangers
// displaces itself. A connection that has spoken may stay for `grace`.
class ConnectionQuota {
 public:
  using Id = const void*;  // the caller's; not read
  using Time = std::chrono::steady_clock::time_point;
  struct Limits {
    std::size_t most = 256;
    std::size_t most_of_address = most;
    std::chrono::milliseconds grace{1000};  // from the first byte until a connection that has spoken may go
  };
  explicit ConnectionQuota(const Limits& limits) : limits_(limits) {}

  // Every place is taken and none of them may be freed: newcomers have to wait.
  [[nodiscard]] bool is_full(Time now) const;

  struct Decision {
    bool admitted = true;    // false: the newcomer has to go, because its address has too many already
    Id displaced = nullptr;  // this connection has to go, and counts no longer; nullptr: none
  };
  // Call it only while !is_full().
  Decision add(Id id, const std::string& address, Time now);
  void spoke(Id id, Time now);  // it has shown more than an idle stranger would
  void remove(Id id);           // an unknown one is ignored
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Id id = nullptr;
    std::string address;
    bool silent = true;
    Time since{};
  };
  using Entries = std::list<Entry>;
  bool may_go(const Entry& entry, Time now) const;
  Entries::iterator choose(const std::string& address, Time now);  // empty address: among all

  const Limits limits_;
  Entries entries_;  // oldest first
};

}  // namespace dtrain::net
