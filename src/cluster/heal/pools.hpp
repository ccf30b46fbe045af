// For how long pools rest after a worker was lost.
#pragma once

#include <dtrain/cluster/reconcile.hpp>

namespace dtrain::cluster {

// Notes what has become of the workers and the head. A pool rests that has just reclaimed a machine, for it has hardly
// another one; and one whose machine ended soon after a reconciler started it (a failed boot, no right to the key of
// its disk), each time for twice as long. A worker that stays ends the latter, and a head that stays that of heads.
void note_losses(const Observed& observed, HealMemory& memory, UnixTime now);
// The same for one worker that is lost, once.
void note_loss(const WorkerSeen& worker, HealMemory& memory, UnixTime now);
// Why a worker of these pools ended soon after its start, the latest one; empty: none did.
std::string latest_end(const std::vector<Pool>& pools, const HealMemory& memory);

}  // namespace dtrain::cluster
