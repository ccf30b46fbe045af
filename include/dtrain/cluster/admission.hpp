// Whether a machine that knocks at the head belongs to the cluster. The port lets in only what is in the cluster's
// security group; beyond that an instance is known by its identity document, which EC2 gives to it alone, by the
// address that the document names, which nobody else can speak from inside a VPC, and by the word of a person with
// credentials (`up`, `add`, `status`, `watch`), who saw it in the account with the cluster's tags.
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
  std::string reason{};  // why not; for the node's log and for people
};

// `own`: the head's. `announced`: {instance id: private address}, as somebody saw them. Pure.
Admission admit(const Identity& node, const std::string& peer_address, const Identity& own,
                const std::map<std::string, std::string>& announced);

}  // namespace dtrain::cluster
