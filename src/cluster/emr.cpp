#include <dtrain/cluster/emr.hpp>

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::cluster {
namespace {

std::string text_of(const Json& object, const char* name) {
  const Json* found = object.find(name);
  return found && found->is_string() ? found->as_string() : std::string();
}

EmrInstance instance_of(const Json& found) {
  return {.instance_id = text_of(found, "Ec2InstanceId"),
          .type = text_of(found, "InstanceType"),
          .state = text_of(found.at("Status"), "State"),
          .private_ip = text_of(found, "PrivateIpAddress"),
          .public_ip = text_of(found, "PublicIpAddress")};
}

std::uint32_t number_of(const std::string& address) {
  in_addr parsed{};
  return ::inet_pton(AF_INET, address.c_str(), &parsed) == 1 ? ntohl(parsed.s_addr) : 0;
}

}  // namespace

std::vector<EmrInstance> in_address_order(std::vector<EmrInstance> instances) {
  std::erase_if(instances, [](const EmrInstance& one) { return one.state != "RUNNING" || one.private_ip.empty(); });
  std::ranges::sort(instances, {}, [](const EmrInstance& one) { return number_of(one.private_ip); });
  const auto repeated = std::ranges::unique(instances, {}, &EmrInstance::private_ip);
  instances.erase(repeated.begin(), repeated.end());
  return instances;
}

std::vector<EmrInstance> running_emr_instances(net::AwsCalls& aws, const std::string& emr_id) {
  std::vector<EmrInstance> instances;
  Json question = Json::object({{"ClusterId", emr_id}, {"InstanceStates", Json::array({"RUNNING"})}});
  for (;;) {
    const Json page = aws.json(net::kEmr, "ListInstances", question);
    for (const Json& one : page.at("Instances").as_array()) instances.push_back(instance_of(one));
    const std::string marker = text_of(page, "Marker");
    if (marker.empty()) break;
    question["Marker"] = marker;
  }
  instances = in_address_order(std::move(instances));
  if (!instances.empty()) return instances;
  throw UsageError(fmt::format("EMR cluster {} has no running instance", emr_id),
                   "wait until it is there: aws emr describe-cluster shows its state");
}

}  // namespace dtrain::cluster
