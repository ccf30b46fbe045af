// The order in which a worker goes whose successor was started: no job loses a worker before the newcomer trains, as
// long as that takes no longer than kHandoverTime.
#pragma once

#include <string>

#include <dtrain/cluster/reconcile.hpp>

namespace dtrain::cluster {

struct HandoverStep {
  enum class Kind { wait, join, drain, finish } kind = Kind::wait;
  std::string why{};  // a sentence for the user
};
// Pure. `fresh` runs for so long instead of `bad`.
HandoverStep next_step(const WorkerSeen& bad, const WorkerSeen& fresh, std::chrono::seconds since);

}  // namespace dtrain::cluster
