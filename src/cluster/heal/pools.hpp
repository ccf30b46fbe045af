// For how long pools rest after a worker was lost.
#pragma once

#include <dtrain/cluster/reconcile.hpp>

namespace dtrain::cluster {

// Notes what has become of the workers. A pool rests that has just reclaimed a machine, for it has hardly another one;
// and one whose machine shut itself down soon after a reconciler started it, as a failed boot does, each time for twice
// as long. A worker that stays ends the latter.
void note_losses(const Observed& observed, HealMemory& memory, UnixTime now);
// The same for one worker that is lost, once.
void note_loss(const WorkerSeen& worker, HealMemory& memory, UnixTime now);

}  // namespace dtrain::cluster
