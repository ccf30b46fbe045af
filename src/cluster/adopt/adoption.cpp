#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/gpu_models.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/stack.hpp>

#include "suspended.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::array<std::string_view, 4> kSettled{"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE",
                                                   "IMPORT_COMPLETE"};
// What would start machines against `remove` and `stop`, and end machines against `add` and the wish.
constexpr std::array<std::string_view, 7> kFighting{"AZRebalance",      "AlarmNotification", "HealthCheck", "Launch",
                                                    "ReplaceUnhealthy", "ScheduledActions",  "Terminate"};

std::string tag_or_none(const Node& node, const char* key) {
  const auto found = node.tags.find(key);
  return found == node.tags.end() ? std::string() : found->second;
}

[[noreturn]] void refuse(const Stack& stack, const std::string& why, const std::string& hint) {
  throw UsageError(fmt::format("stack {} {}", stack.name, why), hint);
}

class AdoptionPlan {
 public:
  AdoptionPlan(const Stack& stack, const Fleet& fleet, const std::map<std::string, MachineType>& types)
      : stack_(stack), fleet_(fleet), types_(types) {}

  Adoption run() {
    refuse_stack();
    find_head();
    refuse_machines();
    name_workers();
    suspend();
    specify();
    advise();
    return std::move(made_);
  }

 private:
  void refuse_stack() const {
    if (fleet_.exists() && adopted_stack(fleet_) != stack_.name) {
      throw UsageError(fmt::format("cluster {} exists, and is not stack {}", fleet_.name, stack_.name),
                       "choose another name for the cluster: the stack's own need not be taken");
    }
    if (std::ranges::find(kSettled, stack_.status) == kSettled.end()) {
      refuse(stack_, "is " + stack_.status,
             stack_.status.ends_with("_IN_PROGRESS")
                 ? "wait until CloudFormation is done with it, and repeat the command"
                 : "mend or delete it in CloudFormation: only a complete stack is a cluster");
    }
    if (stack_.groups.empty())
      refuse(stack_, "has no Auto Scaling group", "only stacks of the deep-learning templates are clusters");
  }

  bool is_master(const StackMachine& machine) const {
    if (tag_or_none(machine.node, tag::kNodeType) == "Master") return true;
    const auto group = std::ranges::find(stack_.groups, machine.scaling_group, &ScalingGroup::name);
    return group != stack_.groups.end() && group->logical_id.find("Master") != std::string::npos;
  }

  void find_head() {
    std::vector<const StackMachine*> masters;
    for (const StackMachine& one : stack_.machines) {
      if (is_master(one)) masters.push_back(&one);
    }
    if (masters.empty()) {
      refuse(stack_, "has no master",
             "the templates make one, tagged NodeType=Master; let its Auto Scaling group start it");
    }
    if (masters.size() > 1)
      refuse(stack_, fmt::format("has {} masters", masters.size()), "end all but one, and repeat the command");
    head_ = masters.front();
    made_.head = head_->node.instance_id;
    if (head_->node.alive()) return;
    refuse(stack_, fmt::format("has a master, {}, that is {}", made_.head, head_->node.state), "start it first");
  }

  void refuse_machines() const {
    for (const StackMachine& one : stack_.machines) {
      const std::string& id = one.node.instance_id;
      if (const std::string other = tag_or_none(one.node, tag::kCluster); !other.empty() && other != fleet_.name) {
        throw UsageError(fmt::format("{} of stack {} belongs to cluster {}", id, stack_.name, other),
                         fmt::format("dtrain cluster down {} gives it back", other));
      }
      if (one.key.empty())
        refuse(stack_, fmt::format("has a machine, {}, without a key pair, so ssh cannot reach it", id),
               "replace it by one with a key pair, and repeat the command");
      const auto type = types_.find(one.node.type);
      if (type == types_.end() || type->second.architecture == "x86_64") continue;
      refuse(stack_, fmt::format("has a machine, {}, of architecture {}", id, type->second.architecture),
             "dtrain runs on x86_64");
    }
  }

  // A machine that an interrupted adoption named keeps its name.
  void name_workers() {
    std::set<std::string> taken;
    std::vector<const StackMachine*> unnamed;
    for (const StackMachine& one : stack_.machines) {
      if (&one == head_) continue;
      if (one.scaling_group.empty()) made_.elastic.insert(one.node.instance_id);
      if (one.node.named() && taken.insert(one.node.name).second) {
        made_.workers[one.node.instance_id] = one.node.name;
      } else {
        unnamed.push_back(&one);
      }
    }
    for (const Node& node : fleet_.nodes) taken.insert(node.name);
    int number = 0;
    for (const StackMachine* one : unnamed) {
      do ++number;
      while (taken.contains(worker_name(number)));
      made_.workers[one->node.instance_id] = worker_name(number);
    }
    made_.actions.push_back(fmt::format("take {} as the head, and {} as {}", made_.head,
                                        count_text(made_.workers.size(), "machine"), names_text()));
    made_.actions.emplace_back(
        "tag them, and give them and the mount targets of their file system the security group that the cluster gets");
    made_.actions.emplace_back("make a launch template for further workers, and install dtrain on the machines by ssh");
  }
  std::string names_text() const {
    std::vector<std::string> names;
    for (const auto& [id, name] : made_.workers) names.push_back(name);
    std::ranges::sort(names);
    return names.empty() ? "workers" : join_first(names, 4, ", ");
  }

  void suspend() {
    for (const ScalingGroup& group : stack_.groups) {
      std::vector<std::string> processes = split_list(suspended_before(fleet_, group.name));
      for (const std::string_view process : kFighting) {
        if (!group.suspended.contains(std::string(process))) processes.emplace_back(process);
      }
      std::ranges::sort(processes);
      processes.erase(std::ranges::unique(processes).begin(), processes.end());
      made_.suspend[group.name] = join(processes, ",");
      if (processes.empty()) continue;
      made_.actions.push_back(
          fmt::format("suspend {} of Auto Scaling group {}, which would fight the cluster's commands",
                      join(processes, ", "), group.name));
    }
  }

  // New machines start beside the head, so that a head that is started again is reached as this one is.
  void specify() {
    Spec& spec = made_.spec;
    const StackMachine* worker = head_;
    spec.workers = 0;
    for (const StackMachine& one : stack_.machines) {
      if (&one == head_ || made_.elastic.contains(one.node.instance_id)) continue;
      ++spec.workers;
      worker = &one;
    }
    spec.instance_types = {worker->node.type};
    if (head_->node.type != worker->node.type) spec.head_type = head_->node.type;
    spec.image = worker->node.image_id;
    spec.key = head_->key;
    spec.subnet = head_->node.subnet_id;
    spec.private_addresses = head_->node.public_ip.empty();
    if (stack_.file_system.empty()) return;
    spec.shared = "efs:" + stack_.file_system;
    const auto mount = stack_.parameters.find("EFSMountPoint");
    if (mount != stack_.parameters.end() && !mount->second.empty()) {
      spec.mount = mount->second.starts_with('/') ? mount->second : "/" + mount->second;
    }
  }

  void advise() {
    std::set<std::string> told, machine_types;
    for (const StackMachine& one : stack_.machines) machine_types.insert(one.node.type);
    for (const std::string& name : machine_types) {
      const auto type = types_.find(name);
      const GpuModel* const gpu = type == types_.end() ? nullptr : gpu_model(type->second.gpu_name);
      if (!gpu || gpu->trains()) continue;
      made_.notes.push_back(fmt::format(
          "dtrain cannot train on the GPU of {}, a {}, which needs compute capability {}: there it trains on "
          "the CPU, and runs other programs by `dtrain launch`",
          name, gpu->name, text_of(kLeastCapability)));
    }
    for (const StackMachine& one : stack_.machines) {
      if (one.key == head_->key || !told.insert(one.key).second) continue;
      made_.notes.push_back(fmt::format("{} has key pair {}, and the master {}: your ssh needs both",
                                        one.node.instance_id, one.key, head_->key));
    }
    if (stack_.file_system.empty())
      made_.notes.emplace_back("the stack has no file system, so jobs need a folder that all machines share otherwise");
  }

  const Stack& stack_;
  const Fleet& fleet_;
  const std::map<std::string, MachineType>& types_;
  const StackMachine* head_ = nullptr;
  Adoption made_;
};

}  // namespace

Adoption plan_adoption(const Stack& stack, const Fleet& fleet, const std::map<std::string, MachineType>& types) {
  return AdoptionPlan(stack, fleet, types).run();
}

}  // namespace dtrain::cluster
