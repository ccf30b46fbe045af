// The process on a cluster's head that its nodes register with. It gives the bundle away, says who is there, passes
// orders on to nodes, and never calls AWS.
//
// HTTP, for machines that have nothing yet:  GET /bundle/<sha256>; POST /join with an identity document, answered by
// the cluster's token, sealed; POST /failure from a node that could not boot.
// Channels, for those that have the token, {"ask": ...}:
//   register {"node": NodeFacts}     from a node, which then gets {"facts": ...} at once and whenever they change, and
//                                    {"start": AgentJoin, "id"}, answered {"started": id, "error"}, and {"power_off"},
//                                    and {"check": id}, answered {"checked": id, "time_ns", "took_ns", "report":
//                                    Checkup}
//   list                             -> dtrain.cluster-nodes/1
//   check {"seconds"}                -> the same with "reports": {instance id: {"report", "clock_offset_seconds",
//                                    "clock_within_seconds"}} of the nodes that answered in that time
//   start {"host", "join", "id"}     -> {"id"}, with "error" where no agent could be started there
//   announce {"instances": {id: {"address", "name"}}, "launch_template"?} -> {"ok"}: these belong to the cluster, and
//                                    only these
//   power-off {"host"}               -> {"ok"}: the node goes, and is forgotten
#pragma once

#include <functional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/cluster/node_order.hpp>

namespace dtrain::cluster {

struct HeadOptions {
  NodeOrder order;
  Path folder;                                             // of the node: kNodeFolder
  std::function<void(const std::string& line)> on_note{};  // for people
};

// Returns after a stop signal. Throws Error (the port is taken), RemoteError (no identity document).
void run_head(const HeadOptions& options);

}  // namespace dtrain::cluster
