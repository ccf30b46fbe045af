#include "subnet_choice.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <dtrain/cluster/plan.hpp>

#include "ssh_rule.hpp"

namespace dtrain::cluster {
namespace {

int addresses_in(const Subnet& subnet) { return subnet.free_addresses.value_or(std::numeric_limits<int>::max()); }

// The machines that the cluster lacks, and at least one: a node may be lost.
int machines_to_come(const Spec& spec, const Fleet& fleet) {
  const int workers = std::max(spec.workers - fleet.counted_workers(), 0);
  const bool has_head = std::ranges::any_of(fleet.nodes, [](const Node& node) { return node.role == Role::head; });
  const int weight = spec.instance_types.empty() ? 1 : weight_of(spec, spec.instance_types.front());
  return std::max(machines_for(workers, weight) + (has_head ? 0 : 1), 1);
}

// Where a lost head is started again, which keeps its address; empty: there is one.
std::string address_of_lost_head(const Fleet& fleet) { return fleet.head() ? std::string() : fleet.tagged_head(); }

bool holds(const Subnet& subnet, const std::string& address) {
  const std::size_t length = subnet.block.find('/');
  return !address.empty() && length != subnet.block.npos &&
         is_same_block(address + subnet.block.substr(length), subnet.block);
}

// `subnets`: not empty. That of a lost head; else the first that has room, one with machines of the cluster before the
// others; where none has enough, the one with the most.
const Subnet& best_of(const std::vector<Subnet>& subnets, const std::set<std::string>& in_use, int machines,
                      const std::string& lost_head) {
  const auto of_head = std::ranges::find_if(subnets, [&](const Subnet& one) { return holds(one, lost_head); });
  if (of_head != subnets.end()) return *of_head;
  for (const bool used : {true, false}) {
    for (const Subnet& one : subnets) {
      if (in_use.contains(one.id) == used && addresses_in(one) >= machines) return one;
    }
  }
  return *std::ranges::max_element(subnets, {}, addresses_in);
}

}  // namespace

// Where one of a zone gives public addresses, and the nodes are to have them, the others do not suit.
SubnetChoice::SubnetChoice(const Spec& spec, std::vector<Subnet> all) : spec_(spec) {
  std::ranges::sort(all, {}, &Subnet::id);
  for (Subnet& one : all) by_zone_[one.zone].push_back(std::move(one));
  if (spec.private_addresses || !spec.subnet.empty()) return;
  for (auto& [zone, subnets] : by_zone_) {
    if (!std::ranges::any_of(subnets, &Subnet::gives_public_ip)) continue;
    std::erase_if(subnets, [](const Subnet& one) { return !one.gives_public_ip; });
  }
}

bool SubnetChoice::is_open() const {
  return std::ranges::any_of(by_zone_, [](const auto& zone) { return zone.second.size() > 1; });
}

std::vector<Subnet> SubnetChoice::for_nodes_of(const Fleet& fleet) const {
  std::set<std::string> in_use;
  for (const Node& node : fleet.nodes) in_use.insert(node.subnet_id);
  const int machines = machines_to_come(spec_, fleet);
  std::vector<Subnet> chosen;
  const std::string lost_head = address_of_lost_head(fleet);
  for (const auto& [zone, subnets] : by_zone_) chosen.push_back(best_of(subnets, in_use, machines, lost_head));
  return chosen;
}

}  // namespace dtrain::cluster
