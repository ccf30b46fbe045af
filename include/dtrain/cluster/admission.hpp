// Decides whether a machine that asks the head to join belongs to the cluster. The port admits only members of the
// cluster's security group. Beyond that, an instance proves itself by its identity document, which EC2 gives to it
// alone; by the address in that document, from which no other machine inside a VPC can send; and by an announcement of
// a user with credentials (`up`, `add`, `status`, `watch`), who saw the instance in the account with the cluster's
// tags.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <dtrain/base/json.hpp>

namespace dtrain::cluster {

struct Identity {
  std::string account, region, instance_id, address, zone, type;
};
// The instance identity document of the metadata service. Throws DataError.
Identity identity_from(std::string_view document);

struct Admission {
  bool admitted = false;
  std::string reason{};  // why it is refused; for the node's log and for the user
};

// `own`: identity of the head. `announced`: {instance id: private address}, from the latest announcement. Pure.
Admission admit(const Identity& node, const std::string& peer_address, const Identity& own,
                const std::map<std::string, std::string>& announced);

}  // namespace dtrain::cluster
