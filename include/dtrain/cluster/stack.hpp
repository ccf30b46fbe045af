// Clusters that the predecessors' CloudFormation templates made, as stacks with a master and workers in Auto Scaling
// groups: how such a stack becomes a cluster of dtrain, and how it is given back.
//
// The stack stays CloudFormation's: dtrain changes none of its resources, except that it tags its machines, gives them
// and the mount targets one more security group, and suspends the processes of the Auto Scaling groups that would start
// and end machines against the cluster's own commands. All of that is undone by give_back(). A stack is never deleted:
// it holds what dtrain does not know, such as queues and machines of others, and its template alone says what becomes
// of its file system.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include <dtrain/cluster/change.hpp>

namespace dtrain::cluster {

namespace tag {
inline constexpr const char* kStack = "dtrain:stack";       // on the security group: the stack's name
inline constexpr const char* kScaling = "dtrain:scaling:";  // on the security group, before a number: a group's name
inline constexpr const char* kSuspended = "dtrain:suspended:";  // the same: the processes that dtrain suspended
}  // namespace tag

struct ScalingGroup {
  std::string name{}, logical_id{};   // logical_id: what the template calls it
  int least = 0, wanted = 0;          // machines
  std::set<std::string> suspended{};  // names of processes
  std::vector<std::string> instances{};
};

struct StackMachine {
  Node node{};                  // its name is its id
  std::string scaling_group{};  // empty: it was launched from the elastic launch template
  std::string key{};            // its key pair; empty: none
  std::string vpc_id{};
  std::vector<std::string> security_groups{};
};

struct Stack {
  std::string name{}, status{};  // "CREATE_COMPLETE"
  std::map<std::string, std::string> parameters{};
  std::string file_system{};  // id; empty: none
  std::vector<ScalingGroup> groups{};
  std::vector<StackMachine> machines{};  // that are not ended
};
// Throws UsageError for a stack that does not exist, and whatever AwsCalls throws.
Stack read_stack(net::AwsCalls& aws, const std::string& name);

struct Adoption {
  std::string head{};                            // instance id
  std::map<std::string, std::string> workers{};  // instance id -> name
  std::set<std::string> elastic{};               // ids of the workers that may leave by their tags
  std::map<std::string, std::string> suspend{};  // Auto Scaling group -> processes, apart by commas
  std::vector<std::string> notes{};              // advice for the user
  std::vector<std::string> actions{};            // sentences
  Spec spec{};
};
// Pure. Throws UsageError for a stack that is no such cluster, changes at the moment, has no master that runs, or whose
// machines have no key pair; and for a machine or a name that belongs to another cluster.
Adoption plan_adoption(const Stack& stack, const Fleet& fleet, const std::map<std::string, MachineType>& types);

// Machines on which dtrain cannot run, a line each: of another kind, without a tool that it needs, or (one of each
// image and type is tried) with a system that does not start it. Machines that ssh does not reach are not among them.
// Changes nothing.
std::vector<std::string> machines_without_dtrain(const ClusterRequest& request, const Stack& stack,
                                                 const Adoption& adoption);

// Makes the stack a cluster as planned, and returns it.
Fleet adopt_stack(const AwsContext& context, const ClusterRequest& request, const Account& account, const Stack& stack,
                  const Adoption& adoption);

// The stack that the cluster was; empty: `up` made the cluster.
std::string adopted_stack(const Fleet& fleet);
// Throws UsageError while a machine of the stack is stopped: its Auto Scaling group ends what does not run, as soon as
// give_back() lets its processes run again.
void require_running_machines(const Fleet& fleet);
struct [[nodiscard]] GivenBack {
  std::vector<std::string> machines{};  // ids
  std::vector<Leftover> leftover{};     // what could not be given back; the same call goes on with it
};
// Takes from the stack's resources what adopt_stack() gave them. Where an Auto Scaling group has fewer machines than it
// wants, its wish is lowered to those, so that it starts none; then its processes run again. The machines that dtrain
// started and the cluster's own resources stay, for bring_down().
GivenBack give_back(const AwsContext& context, const Fleet& fleet);

// Starts dtrain on the adopted machines that run, by ssh: the boot script of a node, which never turns such a machine
// off. Returns a line for each machine where that failed; repeated, it does what is left.
std::vector<std::string> install_on_machines(const Fleet& fleet, const ClusterRequest& request, const Account& account);
// Ends what install_on_machines() started, and its start at boot. Lines as above.
std::vector<std::string> remove_from_machines(const Fleet& fleet);

}  // namespace dtrain::cluster
