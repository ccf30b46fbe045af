#include <dtrain/cluster/emr.hpp>

#include <arpa/inet.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include <dtrain/base/error.hpp>

#include "wait.hpp"

namespace dtrain::cluster {
namespace {

// EMR counts the seconds since 1970.
std::string launch_time(const Json& status) {
  const Json* timeline = status.find("Timeline");
  const Json* created = timeline ? timeline->find("CreationDateTime") : nullptr;
  if (!created || !created->is_number()) return {};
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.000Z", fmt::gmtime(static_cast<std::time_t>(created->as_number())));
}

EmrInstance instance_of(const Json& found) {
  return {.instance_id = found.find_text("Ec2InstanceId"),
          .type = found.find_text("InstanceType"),
          .market = found.find_text("Market"),
          .state = found.at("Status").find_text("State"),
          .private_ip = found.find_text("PrivateIpAddress"),
          .public_ip = found.find_text("PublicIpAddress"),
          .launch_time = launch_time(found.at("Status"))};
}

std::uint32_t number_of(const std::string& address) {
  in_addr parsed{};
  return ::inet_pton(AF_INET, address.c_str(), &parsed) == 1 ? ntohl(parsed.s_addr) : 0;
}

// The entries of list `name` of all pages.
std::vector<Json> all_pages(net::AwsCalls& aws, const std::string& action, Json question, const char* name) {
  std::vector<Json> all;
  const std::string call = fmt::format("{} {}", net::kEmr.service.name, action);
  for (net::Pages pages(aws, call);;) {
    const Json page = aws.json(net::kEmr, action, question);
    net::read_answer(call, [&] {
      for (const Json& one : page.at(name).as_array()) all.push_back(one);
    });
    const std::string marker = page.find_text("Marker");
    if (marker.empty()) return all;
    pages.turn(marker);
    question["Marker"] = marker;
  }
}

bool has_tag(const Json& described, const std::string& cluster) {
  const Json* tags = described.find("Tags");
  if (!tags || !tags->is_array()) return false;
  return std::ranges::any_of(tags->as_array(), [&](const Json& one) {
    return one.find_text("Key") == tag::kCluster && one.find_text("Value") == cluster;
  });
}

Json describe(net::AwsCalls& aws, const std::string& emr_id) {
  const Json answer = aws.json(net::kEmr, "DescribeCluster", Json::object({{"ClusterId", emr_id}}));
  return net::read_answer("elasticmapreduce DescribeCluster", [&] { return answer.at("Cluster"); });
}

Node node_of(const EmrInstance& instance, Role role) {
  return {.name = role == Role::head ? "head" : instance.instance_id,
          .role = role,
          .instance_id = instance.instance_id,
          .state = instance.state == "RUNNING" ? "running" : "pending",
          .private_ip = instance.private_ip,
          .public_ip = instance.public_ip,
          .type = instance.type,
          .market = instance.market == "SPOT" ? Market::spot : Market::on_demand,
          .launch_time = instance.launch_time};
}

void add_nodes(net::AwsCalls& aws, const EmrCluster& emr, const Json& kinds, Role role, std::vector<Node>& nodes) {
  const Json question = Json::object({{"ClusterId", emr.id}, {"InstanceGroupTypes", kinds}});
  for (const Json& one : all_pages(aws, "ListInstances", question, "Instances")) {
    const EmrInstance instance = instance_of(one);
    if (instance.state != "TERMINATED") nodes.push_back(node_of(instance, role));
  }
}

// The group that `up` made for workers.
struct WorkerGroup {
  std::string id;
  int wanted = 0;
  std::string state;
};
WorkerGroup worker_group(net::AwsCalls& aws, const EmrCluster& emr) {
  for (const Json& one :
       all_pages(aws, "ListInstanceGroups", Json::object({{"ClusterId", emr.id}}), "InstanceGroups")) {
    if (one.find_text("InstanceGroupType") != "CORE") continue;
    return {one.find_text("Id"), static_cast<int>(one.at("RequestedInstanceCount").as_integer()),
            one.at("Status").find_text("State")};
  }
  throw DataError(fmt::format("EMR cluster {} has no core instance group", emr.id));
}

void modify(net::AwsCalls& aws, const EmrCluster& emr, Json change) {
  aws.json(net::kEmr, "ModifyInstanceGroups",
           Json::object({{"ClusterId", emr.id}, {"InstanceGroups", Json::array({std::move(change)})}}));
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
  const Json question = Json::object({{"ClusterId", emr_id}, {"InstanceStates", Json::array({"RUNNING"})}});
  for (const Json& one : all_pages(aws, "ListInstances", question, "Instances")) instances.push_back(instance_of(one));
  instances = in_address_order(std::move(instances));
  if (!instances.empty()) return instances;
  throw UsageError(fmt::format("EMR cluster {} has no running instance", emr_id),
                   "wait until it is there: aws emr describe-cluster shows its state");
}

std::optional<EmrCluster> find_emr(net::AwsCalls& aws, const std::string& cluster) {
  const Json question = Json::object(
      {{"ClusterStates", Json::array({"STARTING", "BOOTSTRAPPING", "RUNNING", "WAITING", "TERMINATING"})}});
  for (const Json& one : all_pages(aws, "ListClusters", question, "Clusters")) {
    if (one.find_text("Name") != cluster) continue;
    const Json found = describe(aws, one.find_text("Id"));
    if (!has_tag(found, cluster)) continue;
    const std::string state = found.at("Status").find_text("State");
    if (state.starts_with("TERMINATED")) continue;  // the list is older
    return EmrCluster{found.find_text("Id"), state, found.find_text("LogUri")};
  }
  return std::nullopt;
}

std::vector<Node> emr_nodes(net::AwsCalls& aws, const EmrCluster& emr) {
  std::vector<Node> nodes;
  add_nodes(aws, emr, Json::array({"MASTER"}), Role::head, nodes);
  add_nodes(aws, emr, Json::array({"CORE", "TASK"}), Role::worker, nodes);
  return nodes;
}

void end_emr(const AwsContext& context, const EmrCluster& emr) {
  context.say(fmt::format("ending EMR cluster {}", emr.id));
  context.aws.json(net::kEmr, "TerminateJobFlows", Json::object({{"JobFlowIds", Json::array({emr.id})}}));
  wait_until(context.patience, fmt::format("EMR cluster {} has ended", emr.id),
             [&] { return describe(context.aws, emr.id).at("Status").find_text("State").starts_with("TERMINATED"); });
}

// The new size is given as a number, so a repeated call changes nothing more.
int grow_emr(net::AwsCalls& aws, const EmrCluster& emr, int more) {
  const WorkerGroup group = worker_group(aws, emr);
  modify(aws, emr, Json::object({{"InstanceGroupId", group.id}, {"InstanceCount", group.wanted + more}}));
  return group.wanted + more;
}

void shrink_emr(net::AwsCalls& aws, const EmrCluster& emr, const std::string& instance_id) {
  const WorkerGroup group = worker_group(aws, emr);
  if (group.state == "RESIZING") {  // this worker may be leaving already, and another call would remove one more
    throw UsageError(fmt::format("EMR is still resizing cluster {}", emr.id), "run the same command again later");
  }
  const Json chosen = Json::object({{"InstancesToTerminate", Json::array({instance_id})}});
  modify(aws, emr,
         Json::object({{"InstanceGroupId", group.id},
                       {"InstanceCount", group.wanted - 1},
                       {"ShrinkPolicy", Json::object({{"InstanceResizePolicy", chosen}})}}));
}

}  // namespace dtrain::cluster
