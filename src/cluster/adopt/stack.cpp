#include <dtrain/cluster/stack.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "aws/ec2_fields.hpp"
#include "machines.hpp"
#include "scaling.hpp"

namespace dtrain::cluster {
namespace {

bool says_there_is_none(const net::AwsError& problem) {
  return problem.facts().code == "ValidationError" &&
         problem.facts().message.find("does not exist") != std::string::npos;
}

net::Element find_stack(net::AwsCalls& aws, const std::string& name) {
  try {
    const net::Element answer = aws.query(net::kCloudFormation, "DescribeStacks", {{"StackName", name}});
    const auto found = answer.at("DescribeStacksResult").list("Stacks");
    if (!found.empty()) return found.front();
  } catch (const net::AwsError& problem) {
    if (!says_there_is_none(problem)) throw;
  }
  throw UsageError(fmt::format("there is no stack {} in {}", name, aws.region()),
                   "aws cloudformation describe-stacks lists those that there are; give setting 'stack' NAME");
}

struct Resource {
  std::string logical_id{}, id{}, type{};
};

std::vector<Resource> resources_of(net::AwsCalls& aws, const std::string& name) {
  const net::Element answer = aws.query(net::kCloudFormation, "DescribeStackResources", {{"StackName", name}});
  std::vector<Resource> resources;
  for (const net::Element& one : answer.at("DescribeStackResourcesResult").list("StackResources")) {
    resources.push_back({one.value("LogicalResourceId"), one.value("PhysicalResourceId"), one.value("ResourceType")});
  }
  return resources;
}

// The machines of the groups, and those of the elastic launch template, which carry a tag named after the stack.
std::vector<StackMachine> machines_of(net::AwsCalls& aws, const Stack& stack) {
  std::map<std::string, std::string> group_of_id;
  for (const ScalingGroup& group : stack.groups) {
    for (const std::string& id : group.instances) group_of_id[id] = group.name;
  }
  std::vector<std::string> ids;
  for (const auto& [id, group] : group_of_id) ids.push_back(id);
  for (const net::Element& one : aws.query_all(net::kEc2, "DescribeInstances",
                                               filtered({{"tag-key", elastic_tag(stack.name)}}), "reservationSet")) {
    for (const net::Element& instance : one.list("instancesSet")) {
      const std::string& id = instance.value("instanceId");
      // What dtrain started for a cluster of this name carries the same tag.
      if (!group_of_id.contains(id) && node_of(instance).launch.empty()) ids.push_back(id);
    }
  }
  std::vector<StackMachine> machines = read_machines(aws, ids);
  for (StackMachine& one : machines) one.scaling_group = group_of_id[one.node.instance_id];
  std::ranges::sort(machines, {}, [](const StackMachine& one) { return one.node.instance_id; });
  return machines;
}

}  // namespace

Stack read_stack(net::AwsCalls& aws, const std::string& name) {
  const net::Element found = find_stack(aws, name);
  Stack stack{.name = found.value("StackName"), .status = found.value("StackStatus")};
  for (const net::Element& one : found.list("Parameters")) {
    stack.parameters[one.value("ParameterKey")] = one.value("ParameterValue");
  }
  std::map<std::string, std::string> scaling;
  for (const Resource& one : resources_of(aws, name)) {
    if (one.type == "AWS::AutoScaling::AutoScalingGroup") scaling[one.id] = one.logical_id;
    if (one.type == "AWS::EFS::FileSystem") stack.file_system = one.id;
  }
  if (stack.file_system.empty()) stack.file_system = stack.parameters["EFSFileSystemId"];
  stack.groups = read_scaling_groups(aws, scaling);
  stack.machines = machines_of(aws, stack);
  return stack;
}

std::string adopted_stack(const Fleet& fleet) {
  if (!fleet.group) return {};
  const auto found = fleet.group->tags.find(tag::kStack);
  return found == fleet.group->tags.end() ? std::string() : found->second;
}

}  // namespace dtrain::cluster
