// The process on a cluster's head that its nodes register with. It serves the bundle, lists the nodes, forwards
// requests to nodes, and never calls AWS.
//
// HTTP, for machines that boot: GET /bundle/<sha256>, whose hash they know; POST /failure, from a node that could not.
// The admission port, for root of machines with the admission secret (cluster/admission.hpp): {"document": the identity
//   document} -> {"port", "token"} of the channels, and "ends_in" with the seconds until the head's machine ends where
//   it has a time limit, or {"error"}.
// Channels, for clients with the token, {"ask": ...}:
//   register {"node": NodeFacts}     from a node, which then gets {"facts": ...} at once and whenever they change, and
//                                    {"start": AgentOrder, "id"}, answered {"started": id, "error"}, and {"power_off"},
//                                    and {"check": id}, answered {"checked": id, "time_ns", "took_ns", "report":
//                                    Checkup}; without being asked it sends {"report": Checkup} each minute, and when
//                                    EC2 announces its end
//   list                             -> dtrain.cluster-nodes/1, in which nodes have their latest "report"
//   check {"seconds"}                -> the same with "reports": {instance id: {"report", "clock_offset_seconds",
//                                    "clock_within_seconds"}} of the nodes that answered in that time
//   start {"host", "join", "id"}     -> {"id"}, with "error" if no agent could be started there, or the node was lost
//   announce {"instances": {id: {"address", "name"}}, "launch_template"?} -> {"ok"}: the cluster has exactly
//                                    these instances
//   power-off {"host"}               -> {"ok"}: the node powers off and is removed from the list
#pragma once

#include <functional>
#include <string>

#include <dtrain/base/files.hpp>
#include <dtrain/cluster/node_order.hpp>

namespace dtrain::cluster {

struct HeadOptions {
  NodeOrder order;
  Path folder;                                             // the node's folder: kNodeFolder
  std::function<void(const std::string& line)> on_note{};  // lines for the log
};

// Returns after a stop signal. Throws Error if the port is taken and RemoteError if there is no identity document.
void run_head(const HeadOptions& options);

}  // namespace dtrain::cluster
