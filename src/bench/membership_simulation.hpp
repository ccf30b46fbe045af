// How long changes of membership take with hundreds of workers that are not there. The real Coordinator decides and the
// real plan of the state's transfer is carried out; agents, workers and links are modelled.
//
// A message takes the coordinator's one thread a fixed time, and then the latency of the link. A mesh is connected when
// all its members know of it and each has had time for its connections, one after the other, beside four latencies of
// the handshake. In a transfer each rank works through its part of the plan in order, and its link carries one chunk
// at a time in each direction. Machines, models and loaders take no time to start.
#pragma once

#include <dtrain/comm/simulation.hpp>

namespace dtrain::bench {

struct MembershipModel {
  int ranks = 0;
  int newcomers = 1;
  comm::LinkModel link{};
  double state_bytes = 0;
  double step = 0.2;  // seconds of a training step
  // Processor time, seconds: of the coordinator for a message, of a worker for a connection (tests/bench/elastic.md).
  double message = 13e-6, connection = 0.2e-3;
};

struct SimulatedChange {
  double noticed = 0;  // seconds from the cause to when the coordinator acts
  double pause = 0;    // of training, from the end of a step, or the cause, to the start of the next step
  double state = 0;    // of the pause, moving the state
};
struct SimulatedChanges {
  SimulatedChange join;      // of all newcomers at once, once they are ready; `noticed`: until the change is committed
  SimulatedChange killed;    // a worker
  SimulatedChange silent;    // a worker that hangs
  SimulatedChange takeover;  // the coordinator is lost; `noticed`: until there is another one, while training goes on
};

// Pure but for a temporary folder. Throws Error where a change does not come about.
SimulatedChanges simulate_membership(const MembershipModel& model);

// Until the last of the newcomers has the whole state.
double transfer_seconds(const MembershipModel& model);

}  // namespace dtrain::bench
