#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/admission.hpp>
#include <dtrain/cluster/stack.hpp>
#include <dtrain/cluster/wish.hpp>

#include "aws/file_systems.hpp"
#include "aws/parallel.hpp"
#include "aws/resources.hpp"
#include "aws/rules.hpp"
#include "machines.hpp"
#include "plan/boot.hpp"
#include "scaling.hpp"
#include "suspended.hpp"

namespace dtrain::cluster {
namespace {

std::vector<std::string> and_group(std::vector<std::string> groups, const std::string& group) {
  if (std::ranges::find(groups, group) == groups.end()) groups.push_back(group);
  return groups;
}

// Each step may be repeated; the group comes first, because its tags say how everything is given back.
class Adopter {
 public:
  Adopter(const AwsContext& context, const ClusterRequest& request, const Account& account, const Stack& stack,
          const Adoption& adoption)
      : context_(context), request_(request), account_(account), stack_(stack), adoption_(adoption) {}

  Fleet run() {
    make_own_group();
    for (const auto& [name, processes] : adoption_.suspend) {
      if (!processes.empty()) suspend_scaling(context_.aws, name, processes);
    }
    std::vector<std::function<void()>> pieces;
    for (const StackMachine& one : stack_.machines) {
      pieces.push_back([this, &one] { take(one); });
    }
    pieces.push_back([this] { open_mount_targets(); });
    do_all(pieces);
    make_own_template();
    write_down();
    return read_fleet_with(context_.aws, fleet_);
  }

 private:
  void make_own_group() {
    fleet_ = read_fleet(context_.aws, request_.name);
    if (!fleet_.group) {
      fleet_.group = make_group(context_.aws, request_, account_).group;
      context_.say("security group " + fleet_.group->id);
    }
    Tags& tags = fleet_.group->tags;
    Tags noted = scaling_tags(adoption_.suspend);
    noted[tag::kStack] = stack_.name;
    if (!tags.contains(tag::kAdmission)) noted[tag::kAdmission] = new_admission_secret();
    set_tags(context_.aws, {fleet_.group->id}, noted);
    for (const auto& [key, value] : noted) tags[key] = value;
    request_.admission = tags[tag::kAdmission];
    set_own_rules(context_.aws, *fleet_.group, false);
  }

  void take(const StackMachine& machine) {
    const std::string& id = machine.node.instance_id;
    const bool is_head = id == adoption_.head, is_elastic = adoption_.elastic.contains(id);
    Tags tags{{tag::kCluster, request_.name},
              {tag::kAdopted, "yes"},
              {tag::kRole, is_head ? "head" : "worker"},
              {tag::kNode, is_head ? "head" : adoption_.workers.at(id)},
              {tag::kNodeType, is_head ? "Master" : "Worker"}};
    if (!is_head && !is_elastic) tags[tag::kBase] = "yes";
    if (is_elastic) tags[elastic_tag(request_.name)] = "";
    // What the predecessors wrote is about a job of theirs: as ADDED, the next job would take it for removed.
    if (!is_adopted(machine.node) && !machine.node.elastic_status.empty()) tags[tag::kStatus] = "";
    set_tags(context_.aws, {id}, tags);
    const auto groups = and_group(machine.security_groups, fleet_.group->id);
    if (groups != machine.security_groups) set_security_groups(context_.aws, id, groups);
    context_.say(fmt::format("{} is {}", id, tags[tag::kNode]));
  }

  void open_mount_targets() {
    if (!account_.file_system) return;
    for (const auto& target : account_.file_system->mount_targets) {
      const auto there = groups_of_target(context_.aws, target.id);
      const auto groups = and_group(there, fleet_.group->id);
      if (groups != there) set_groups_of_target(context_.aws, target.id, groups);
    }
  }

  const StackMachine& head() const {
    return *std::ranges::find(stack_.machines, adoption_.head,
                              [](const StackMachine& one) { return one.node.instance_id; });
  }

  void make_own_template() {
    const TemplateContent content{*fleet_.group, boot_script(request_, account_, NodeBoot::Role::worker,
                                                             head().node.private_ip, account_.file_system)};
    const TemplateOrder order = template_of_workers(request_, account_, content);
    if (!fleet_.launch_template) {
      fleet_.launch_template = make_template(context_.aws, order);
      context_.say("launch template " + fleet_.launch_template->id);
    } else if (fleet_.tagged_head() != head().node.private_ip) {
      renew_template(context_.aws, order, *fleet_.launch_template);
    }
  }

  void write_down() {
    int last = last_node(fleet_);
    for (const auto& [id, name] : adoption_.workers) last = std::max(last, worker_number(name).value_or(0));
    const Wish wish{.base = request_.spec.workers, .elastic = static_cast<int>(adoption_.elastic.size())};
    Tags noted{{tag::kHead, head().node.private_ip}, {tag::kLastNode, std::to_string(last)}};
    if (!fleet_.group->tags.contains(tag::kWish)) noted[tag::kWish] = wish_text(wish);
    set_tags(context_.aws, {fleet_.group->id}, noted);
    for (const auto& [key, value] : noted) fleet_.group->tags[key] = value;
  }

  const AwsContext& context_;
  ClusterRequest request_;
  const Account& account_;
  const Stack& stack_;
  const Adoption& adoption_;
  Fleet fleet_;
};

}  // namespace

Fleet adopt_stack(const AwsContext& context, const ClusterRequest& request, const Account& account, const Stack& stack,
                  const Adoption& adoption) {
  return Adopter(context, request, account, stack, adoption).run();
}

}  // namespace dtrain::cluster
