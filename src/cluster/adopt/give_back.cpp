#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/cluster/stack.hpp>

#include "aws/ec2_fields.hpp"
#include "aws/file_systems.hpp"
#include "machines.hpp"
#include "scaling.hpp"
#include "suspended.hpp"

namespace dtrain::cluster {
namespace {

class GiveBack {
 public:
  GiveBack(const AwsContext& context, const Fleet& fleet) : context_(context), fleet_(fleet) {}

  GivenBack run() {
    std::vector<std::string> ids;
    for (const Node& node : fleet_.nodes) {
      if (is_adopted(node)) ids.push_back(node.instance_id);
    }
    const std::vector<StackMachine> machines = read_machines(context_.aws, ids);
    do_part("Auto Scaling groups", fleet_.name, [this] { let_scale(); });
    do_part("file system", "mount targets", [this] { close_mount_targets(); });
    for (const StackMachine& one : machines) {
      do_part("instance", one.node.instance_id, [&] { release(one); });
    }
    return std::move(made_);
  }

 private:
  void do_part(const std::string& kind, const std::string& id, const std::function<void()>& part) {
    if (const auto problem = attempt(part)) made_.leftover.push_back({kind, id, problem->what()});
  }

  std::vector<std::string> without_own(std::vector<std::string> groups) const {
    std::erase(groups, fleet_.group->id);
    return groups;
  }

  // A group whose machines `remove` ended would start others for them.
  void let_scale() {
    const auto suspended = suspended_by_us(fleet_);
    std::map<std::string, std::string> names;
    for (const auto& [name, processes] : suspended) names[name] = "";
    for (const ScalingGroup& group : read_scaling_groups(context_.aws, names)) {
      const int there = static_cast<int>(read_machines(context_.aws, group.instances).size());
      if (there < group.wanted) {
        want_machines(context_.aws, group, there);
        context_.say(
            fmt::format("Auto Scaling group {} wants {} machines, and not {}", group.name, there, group.wanted));
      }
      if (const std::string& processes = suspended.at(group.name); !processes.empty())
        resume_scaling(context_.aws, group.name, processes);
    }
  }

  void close_mount_targets() {
    const Shared shared = shared_of(fleet_.options);
    if (shared.kind != SharedKind::given_efs) return;
    const auto system = file_system_if_there(context_.aws, shared.id);
    if (!system) return;  // it went with its stack
    for (const auto& target : system->mount_targets) {
      const auto there = groups_of_target(context_.aws, target.id);
      const auto groups = without_own(there);
      // One that has no other group was made by dtrain, and goes with the cluster.
      if (groups != there && !groups.empty()) set_groups_of_target(context_.aws, target.id, groups);
    }
  }

  // The tags go last: until then the machine is found by them.
  void release(const StackMachine& machine) {
    const std::string& id = machine.node.instance_id;
    const auto groups = without_own(machine.security_groups);
    if (groups != machine.security_groups && !groups.empty()) set_security_groups(context_.aws, id, groups);
    Fields fields{{"ResourceId.1", id}};
    std::vector<std::string> keys{tag::kCluster, tag::kAdopted,  tag::kRole,  tag::kNode,
                                  tag::kBase,    tag::kReplaced, tag::kStatus};
    // The predecessors' own tag has the stack's name; without it they would end the machine.
    if (fleet_.name != adopted_stack(fleet_)) keys.push_back(elastic_tag(fleet_.name));
    for (std::size_t at = 0; at < keys.size(); ++at) fields.emplace_back(fmt::format("Tag.{}.Key", at + 1), keys[at]);
    context_.aws.query(net::kEc2, "DeleteTags", std::move(fields));
    made_.machines.push_back(id);
  }

  const AwsContext& context_;
  const Fleet& fleet_;
  GivenBack made_;
};

}  // namespace

void require_running_machines(const Fleet& fleet) {
  for (const Node& node : fleet.nodes) {
    if (!is_adopted(node) || node.alive()) continue;
    throw UsageError(fmt::format("{} ({}) of stack {} is {}, and its Auto Scaling group would end it once it is given "
                                 "back",
                                 node.name, node.instance_id, adopted_stack(fleet), node.state),
                     fmt::format("dtrain cluster start {} starts it; then repeat the command", fleet.name));
  }
}

GivenBack give_back(const AwsContext& context, const Fleet& fleet) { return GiveBack(context, fleet).run(); }

}  // namespace dtrain::cluster
