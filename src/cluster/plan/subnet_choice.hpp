// Which subnet of each zone the nodes get, where a VPC has several. The choice must not change while an `up` is
// repeated or a lost head is started again at its address: so a subnet that has machines of the cluster comes first,
// and the order of the others does not follow how many addresses they have at the moment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <dtrain/cluster/account.hpp>

namespace dtrain::cluster {

class SubnetChoice {
 public:
  SubnetChoice(const Spec& spec, std::vector<Subnet> all);
  // Whether a zone has several that suit, so that the machines of the cluster make a difference.
  bool is_open() const;
  // One a zone, by zone. `fleet`: the machines that the cluster has.
  std::vector<Subnet> for_nodes_of(const Fleet& fleet) const;

 private:
  const Spec& spec_;
  std::map<std::string, std::vector<Subnet>> by_zone_;  // those that suit, by id
};

}  // namespace dtrain::cluster
