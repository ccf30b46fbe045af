// Which `up` makes a cluster that is only begun: a tag of its security group. Another `up` may remove what an
// interrupted one left, and nothing of one that still runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {

// An `up` renews its lease between its steps and between the pools that it asks, which take less. Without a renewal for
// so long, it was killed.
inline constexpr std::chrono::minutes kUpLeaseTime{20};

// The process as leases name it. On its own machine, the name tells whether it still runs.
std::string up_holder(std::int64_t process);
// Whether the process ran on this machine, and has ended. False of those of other machines.
bool has_holder_ended(const std::string& holder);

// The lease of another `up` than `me` that may still run; nullopt: there is none.
[[nodiscard]] std::optional<Lease> lease_of_other_up(const Fleet& fleet, const std::string& me, UnixTime now);
// Throws UsageError where there is one. `region`: that of the fleet.
void refuse_other_up(const Fleet& fleet, const std::string& region, const std::string& me, UnixTime now);

// The lease of one `up`, for one thread at a time. A call that cannot write it throws nothing: `say` gets the problem.
class UpLease {
 public:
  using Write = std::function<void(const Tags&)>;  // to the security group
  UpLease(std::function<UnixTime()> clock, Write write, std::function<void(const std::string&)> say);

  // The tag for a group that is being made: it holds from its first moment on.
  Tags begin();
  // Takes the lease unless another `up` may still run.
  void take_free(const Fleet& fleet);
  // Takes it for an `up` that may remove what an interrupted one began, if that is still there. Returns false where
  // another `up` has finished the cluster; throws UsageError where one still makes it. `read`: the fleet as AWS shows
  // it now. `pause`: between writing and reading, for of two that write at once, the last has the lease.
  [[nodiscard]] bool take(const std::function<Fleet()>& read, const std::string& region,
                          const std::function<void()>& pause);
  void renew();   // where it was written a while ago
  void forget();  // it is given back, or the group is
  bool is_held() const { return written_at_.has_value(); }

 private:
  void write();

  std::function<UnixTime()> clock_;
  Write write_;
  std::function<void(const std::string&)> say_;
  std::string me_;
  std::optional<UnixTime> written_at_{};  // nullopt: it is not held
};

}  // namespace dtrain::cluster
