#include "scaling.hpp"

#include <algorithm>

#include <dtrain/base/text.hpp>

#include "aws/ec2_fields.hpp"

namespace dtrain::cluster {
namespace {

int count_of(const net::Element& group, const char* name) {
  return static_cast<int>(parse_integer(group.value(name)).value_or(0));
}

// AWS takes ended machines out of a group only while its processes run.
bool is_there(const net::Element& instance) { return !instance.value("LifecycleState").starts_with("Terminat"); }

Fields process_fields(const std::string& group, const std::string& processes) {
  Fields fields{{"AutoScalingGroupName", group}};
  add_list(fields, "ScalingProcesses.member", split(processes, ','));
  return fields;
}

}  // namespace

std::vector<ScalingGroup> read_scaling_groups(net::AwsCalls& aws, const std::map<std::string, std::string>& names) {
  std::vector<ScalingGroup> groups;
  if (names.empty()) return groups;
  std::vector<std::string> asked;
  for (const auto& [name, logical_id] : names) asked.push_back(name);
  Fields fields;
  add_list(fields, "AutoScalingGroupNames.member", asked);
  const net::Element answer = aws.query(net::kAutoScaling, "DescribeAutoScalingGroups", std::move(fields));
  for (const net::Element& one : answer.at("DescribeAutoScalingGroupsResult").list("AutoScalingGroups")) {
    ScalingGroup group{.name = one.value("AutoScalingGroupName"),
                       .least = count_of(one, "MinSize"),
                       .wanted = count_of(one, "DesiredCapacity")};
    group.logical_id = names.at(group.name);
    for (const net::Element& process : one.list("SuspendedProcesses"))
      group.suspended.insert(process.value("ProcessName"));
    for (const net::Element& instance : one.list("Instances")) {
      if (is_there(instance)) group.instances.push_back(instance.value("InstanceId"));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

void suspend_scaling(net::AwsCalls& aws, const std::string& group, const std::string& processes) {
  aws.query(net::kAutoScaling, "SuspendProcesses", process_fields(group, processes));
}

void resume_scaling(net::AwsCalls& aws, const std::string& group, const std::string& processes) {
  aws.query(net::kAutoScaling, "ResumeProcesses", process_fields(group, processes));
}

void want_machines(net::AwsCalls& aws, const ScalingGroup& group, int machines) {
  aws.query(net::kAutoScaling, "UpdateAutoScalingGroup",
            {{"AutoScalingGroupName", group.name},
             {"MinSize", std::to_string(std::min(group.least, machines))},
             {"DesiredCapacity", std::to_string(machines)}});
}

}  // namespace dtrain::cluster
