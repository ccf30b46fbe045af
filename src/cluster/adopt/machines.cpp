#include "machines.hpp"

#include "aws/ec2_fields.hpp"

namespace dtrain::cluster {

StackMachine stack_machine_of(const net::Element& instance) {
  StackMachine machine{.node = node_of(instance), .key = instance.value("keyName"), .vpc_id = instance.value("vpcId")};
  for (const net::Element& group : instance.list("groupSet")) machine.security_groups.push_back(group.value("groupId"));
  return machine;
}

std::vector<StackMachine> read_machines(net::AwsCalls& aws, const std::vector<std::string>& ids) {
  std::vector<StackMachine> machines;
  if (ids.empty()) return machines;
  // A filter, unlike a list of ids, is no error where an instance is gone.
  Fields fields{{"Filter.1.Name", "instance-id"}};
  add_list(fields, "Filter.1.Value", ids);
  for (const net::Element& one : aws.query_all(net::kEc2, "DescribeInstances", fields, "reservationSet")) {
    for (const net::Element& instance : one.list("instancesSet")) {
      StackMachine machine = stack_machine_of(instance);
      if (machine.node.there()) machines.push_back(std::move(machine));
    }
  }
  return machines;
}

void set_security_groups(net::AwsCalls& aws, const std::string& instance_id, const std::vector<std::string>& groups) {
  Fields fields{{"InstanceId", instance_id}};
  add_list(fields, "GroupId", groups);
  aws.query(net::kEc2, "ModifyInstanceAttribute", std::move(fields));
}

}  // namespace dtrain::cluster
