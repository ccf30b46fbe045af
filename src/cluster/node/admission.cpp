#include <dtrain/cluster/admission.hpp>

#include <fmt/format.h>

namespace dtrain::cluster {

Identity identity_from(std::string_view document) {
  const Json json = Json::parse(document, "an identity document");
  return {.account = json.at("accountId").as_string(),
          .region = json.at("region").as_string(),
          .instance_id = json.at("instanceId").as_string(),
          .address = json.at("privateIp").as_string(),
          .zone = json.at("availabilityZone").as_string(),
          .type = json.at("instanceType").as_string()};
}

Admission admit(const Identity& node, const std::string& peer_address, const Identity& own,
                const std::map<std::string, std::string>& announced) {
  if (node.account != own.account || node.region != own.region) {
    return {.reason = fmt::format("{} is of another account or region", node.instance_id)};
  }
  if (node.address != peer_address) {
    return {.reason =
                fmt::format("{} has the address {}, and {} speaks", node.instance_id, node.address, peer_address)};
  }
  if (node.instance_id == own.instance_id && node.address == own.address) return {.admitted = true};
  const auto known = announced.find(node.instance_id);
  if (known == announced.end()) {
    return {.reason = fmt::format("{} is not yet announced as a node of the cluster", node.instance_id)};
  }
  if (known->second != node.address) {
    return {.reason = fmt::format("{} has the address {} in the account", node.instance_id, known->second)};
  }
  return {.admitted = true};
}

}  // namespace dtrain::cluster
