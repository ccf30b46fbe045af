#include <fmt/format.h>

#include <dtrain/cluster/change.hpp>

#include "resources.hpp"

namespace dtrain::cluster {
namespace {

void name_node(net::AwsCalls& aws, const Fleet& fleet, const Node& node, const std::string& name) {
  set_tags(aws, {node.instance_id}, {{tag::kNode, name}, {tag::kName, fmt::format("dtrain-{}-{}", fleet.name, name)}});
}

}  // namespace

Node start_replacement(const Work& work, const Wish& wish, const Account& account, const Fleet& fleet,
                       const Node& bad) {
  if (const auto before = bad.tags.find(tag::kReplaced); before != bad.tags.end()) {
    if (const Node* there = fleet.find(before->second)) return *there;
  }
  const Belonging belonging = bad.base ? Belonging::base : Belonging::elastic;
  AddResult result = add_workers(work, wish, account, fleet, 1, 1, belonging);
  Node fresh = std::move(result.added.at(0));
  set_tags(work.aws, {bad.instance_id}, {{tag::kReplaced, fresh.instance_id}});
  return fresh;
}

// At no moment a name that `up` counts on is missing, so that it starts nobody in between. Names that were exchanged
// before this was cut short stay.
std::string replace_node(const Work& work, const Fleet& fleet, const Node& bad, const Node& fresh) {
  const bool takes_name = bad.base && worker_number(bad.name) < worker_number(fresh.name);
  if (takes_name) {
    name_node(work.aws, fleet, fresh, bad.name);
    name_node(work.aws, fleet, bad, fresh.name);
  }
  end_node(work, bad);
  return takes_name ? bad.name : fresh.name;
}

}  // namespace dtrain::cluster
