#include "pools.hpp"

#include <algorithm>

namespace dtrain::cluster {
namespace {

void rest_longer(HealMemory::Rest& rest, UnixTime now) {
  ++rest.failures;
  std::chrono::seconds pause = kFirstPoolPause;
  for (int failure = 1; failure < rest.failures && pause < kLongestPoolPause; ++failure) pause *= 2;
  rest.since = now;
  rest.until = now + std::min(pause, kLongestPoolPause);
}

void note_stay(const WorkerSeen& worker, HealMemory& memory, UnixTime now) {
  const bool stays =
      worker.state == WorkerSeen::State::running && worker.sick.empty() && now - worker.began >= kLeastAge;
  const auto rest = memory.rests.find(worker.pool.place());
  if (!stays || rest == memory.rests.end()) return;
  if (rest->second.boots_fail() && worker.began > rest->second.boot_failed) memory.rests.erase(rest);
}

void note_head_stay(const Observed& observed, HealMemory& memory, UnixTime now) {
  const bool stays = observed.head == Observed::Head::alive && now - memory.head_rest.since >= kLeastAge;
  if (stays) memory.head_rest = {};
}

}  // namespace

void note_loss(const WorkerSeen& worker, HealMemory& memory, UnixTime now) {
  if (!memory.lost.insert(worker.id).second) return;
  const bool has_ended = worker.state == WorkerSeen::State::ended && !worker.left_itself && !worker.reclaimed;
  const bool is_young = worker.healed && worker.began != UnixTime(0) && now - worker.began < kLeastAge;
  const bool boot_failed = is_young && has_ended, is_spot = worker.pool.market == Market::spot;
  if (!boot_failed && !is_spot) return;
  HealMemory::Rest& rest = memory.rests[worker.pool.place()];
  if (boot_failed && worker.began > rest.boot_failed) {  // machines of one start count once
    rest_longer(rest, now);
    rest.boot_failed = now;
    rest.end = worker.end;
  }
  if (!is_spot) return;
  rest.since = now;
  rest.until = std::max(rest.until, now + kAfterSpotLoss);
}

void note_losses(const Observed& observed, HealMemory& memory, UnixTime now) {
  note_head_stay(observed, memory, now);
  for (const WorkerSeen& worker : observed.workers) {
    if (worker.state != WorkerSeen::State::ended) {
      note_stay(worker, memory, now);
    } else if (!worker.leaves && worker.replaced_by.empty()) {
      note_loss(worker, memory, now);
    }
  }
}

HealMemory after_attempts(HealMemory memory, const std::vector<Attempt>& attempts, UnixTime now) {
  for (const Attempt& one : attempts) {
    HealMemory::Rest& rest = memory.rests[one.pool.place()];
    if (one.got >= one.wanted) {
      if (!rest.boots_fail()) memory.rests.erase(one.pool.place());
      continue;
    }
    // A pool that gave some has no more now, but it is not one that has none.
    if (one.got > 0 && !rest.boots_fail()) rest.failures = 0;
    rest_longer(rest, now);
  }
  return memory;
}

HealMemory after_head_start(HealMemory memory, UnixTime now) {
  rest_longer(memory.head_rest, now);
  return memory;
}

std::string latest_end(const std::vector<Pool>& pools, const HealMemory& memory) {
  const HealMemory::Rest* latest = nullptr;
  for (const Pool& pool : pools) {
    const auto rest = memory.rests.find(pool.place());
    if (rest == memory.rests.end() || !rest->second.boots_fail()) continue;
    if (!latest || rest->second.boot_failed > latest->boot_failed) latest = &rest->second;
  }
  return latest ? latest->end : std::string();
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
