#include <dtrain/cluster/change.hpp>

#include "resources.hpp"

namespace dtrain::cluster {
namespace {

void name_node(net::AwsCalls& aws, const Fleet& fleet, const Node& node, const std::string& name) {
  set_tags(aws, {node.instance_id}, name_tags(fleet.name, name));
}

}  // namespace

Node start_replacement(const AwsContext& context, const ClusterRequest& request, const Account& account,
                       const Fleet& fleet, const Node& bad) {
  if (const auto before = bad.tags.find(tag::kReplaced); before != bad.tags.end()) {
    if (const Node* there = fleet.find(before->second)) return *there;
  }
  const NodeLifecycle lifecycle = bad.base ? NodeLifecycle::base : NodeLifecycle::elastic;
  AddResult result = add_workers(context, request, account, fleet, bad.weight, bad.weight, lifecycle, bad.instance_id);
  Node fresh = std::move(result.added.at(0));
  set_tags(context.aws, {bad.instance_id}, {{tag::kReplaced, fresh.instance_id}});
  return fresh;
}

// The names of base workers exist at every moment, so that a concurrent `up` starts no further worker. If this is
// interrupted, names that were exchanged stay so.
std::string replace_node(const AwsContext& context, const Fleet& fleet, const Node& bad, const Node& fresh) {
  const bool takes_name = bad.base && worker_number(bad.name) < worker_number(fresh.name);
  if (takes_name) {
    name_node(context.aws, fleet, fresh, bad.name);
    name_node(context.aws, fleet, bad, fresh.name);
  }
  end_node(context, bad);
  return takes_name ? bad.name : fresh.name;
}

}  // namespace dtrain::cluster
