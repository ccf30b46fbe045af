// What the head of a registered cluster does: it keeps the cluster's list of hosts and runs its queue of jobs. A user's
// machine asks it over ssh; `dtrain agent --registered` on the head answers.
//   {"ask": "place", "name", "shared"}         -> {"shared", "folder", "probe", "cluster"}: makes the folder, and a
//                                                 file that all hosts must see; "cluster" is null before the first one
//   {"ask": "unplace", "probe"}                -> {}; where no cluster was made, its key goes too
//   {"ask": "reach", "cluster"}                -> {"failed": [{"host", "why"}]}: hosts in which the head cannot log in
//   {"ask": "key", "cluster"}                  -> {"key"}: the public half of the cluster's own key, made where missing
//   {"ask": "claim", "cluster"}                -> {"cluster", "is_new"}: registers it, or changes its prices and budget
//   {"ask": "describe", "name"}                -> {"cluster", "runner", "jobs", "events", "time"}
//   {"ask": "add", "name", "hosts"}            -> {"cluster", "notes"}: they join the jobs that run, too
//   {"ask": "remove", "name", "host", "force"} -> {"cluster", "notes"}: it has left the jobs that run
//   {"ask": "end", "name"}                     -> {"jobs"}: the jobs are ended, and the cluster is forgotten
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <dtrain/base/json.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/cluster/registered.hpp>

namespace dtrain::job {

// nullopt: it is another question. Throws Error.
std::optional<Json> answer_as_head(const Json& question, Reporter& reporter);

// On the head: starts the runner of the cluster's queue in the background, unless one acts. It ends with the cluster.
void keep_runner(const cluster::RegisteredCluster& cluster);
// That runner. Returns after a stop signal, or when the cluster is gone. While the budget is spent no job runs.
void run_registered_queue(const std::string& name, const std::function<void(const std::string&)>& on_note);

}  // namespace dtrain::job
