#include <algorithm>

#include <dtrain/cluster/reconcile.hpp>

namespace dtrain::cluster {

HealMemory after_attempts(HealMemory memory, const std::vector<Attempt>& attempts, UnixTime now) {
  for (const Attempt& one : attempts) {
    if (one.got >= one.wanted) {
      memory.rests.erase(one.pool.text());
      continue;
    }
    HealMemory::Rest& rest = memory.rests[one.pool.text()];
    // A pool that gave some has no more now, but it is not one that has none.
    rest.failures = one.got > 0 ? 1 : rest.failures + 1;
    std::chrono::seconds pause = kFirstPoolPause;
    for (int failure = 1; failure < rest.failures && pause < kLongestPoolPause; ++failure) pause *= 2;
    rest.since = now;
    rest.until = now + std::min(pause, kLongestPoolPause);
  }
  return memory;
}

std::vector<Pool> refill_pools(const Spec& spec, const Account& account, const std::string& zone) {
  std::vector<Pool> pools = worker_pools(spec, account, zone);
  std::vector<std::string> zones{zone};
  for (const Pool& pool : pools) {
    if (std::ranges::find(zones, pool.zone) == zones.end()) zones.push_back(pool.zone);
  }
  std::ranges::stable_sort(pools, {}, [&](const Pool& pool) { return std::ranges::find(zones, pool.zone); });
  return pools;
}

}  // namespace dtrain::cluster
