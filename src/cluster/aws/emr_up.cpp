#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/emr.hpp>
#include <dtrain/net/aws.hpp>
#include <dtrain/net/ssh.hpp>

#include "resources.hpp"
#include "rules.hpp"
#include "wait.hpp"

namespace dtrain::cluster {
namespace {

// A command that needs no script in S3. If it fails on a node, EMR terminates the cluster, and the logs show why.
std::string mount_script(const Spec& spec, const std::string& region) {
  const std::string folder = net::shell_quoted(spec.mount);
  return fmt::format(
      "set -e; command -v mount.nfs4 || sudo yum -y install nfs-utils; sudo mkdir -p {0}; "
      "for i in $(seq 24); do sudo mount -t nfs4 "
      "-o nfsvers=4.1,rsize=1048576,wsize=1048576,hard,timeo=600,retrans=2,noresvport "
      "{1}.efs.{2}.{3}:/ {0} && break; sleep 5; done; mountpoint {0}; sudo chown hadoop: {0}",
      folder, shared_of(spec.shared).id, region, net::aws_domain(region));
}

Json instance_group(const char* role, const std::string& type, int count) {
  return Json::object({{"Name", role},
                       {"InstanceRole", role},
                       {"InstanceType", type},
                       {"InstanceCount", count},
                       {"Market", "ON_DEMAND"}});
}

Json instances_of(const ClusterRequest& request, const Account& account, const SecurityGroup& group) {
  const std::string& workers = request.spec.instance_types.front();
  const std::string& head = request.spec.head_type.empty() ? workers : request.spec.head_type;
  Json groups = Json::array({group.id});
  if (!request.spec.security_group.empty()) groups.push_back(request.spec.security_group);
  Json instances = Json::object(
      {{"InstanceGroups",
        Json::array({instance_group("MASTER", head, 1), instance_group("CORE", workers, request.spec.workers)})},
       {"KeepJobFlowAliveWhenNoSteps", true},
       {"TerminationProtected", false},
       {"AdditionalMasterSecurityGroups", groups},
       {"AdditionalSlaveSecurityGroups", groups}});
  const std::vector<Pool> pools = worker_pools(request.spec, account, {});
  if (!pools.empty()) instances["Ec2SubnetId"] = pools.front().subnet_id;
  if (!account.key.empty()) instances["Ec2KeyName"] = account.key;
  return instances;
}

EmrCluster run(const AwsContext& context, const ClusterRequest& request, const Json& order) {
  try {
    const Json answer = context.aws.json(net::kEmr, "RunJobFlow", order, net::LostReply::tell);
    return {.id = answer.at("JobFlowId").as_string(), .state = "STARTING"};
  } catch (const net::AwsError& problem) {
    if (problem.facts().problem != net::AwsProblem::transient) throw;
    // The call may have succeeded: EMR has no client tokens.
    if (auto there = find_emr(context.aws, request.name)) return *there;
    throw;
  }
}

void wait_until_ready(const AwsContext& context, const std::string& name, const std::string& id) {
  wait_until(context.patience, fmt::format("EMR cluster {} accepts steps", id), [&] {
    const auto emr = find_emr(context.aws, name);
    if (emr && emr->state != "TERMINATING") return emr->takes_work();
    throw Error(
        fmt::format("EMR terminated cluster {}", id),
        fmt::format("aws emr describe-cluster --cluster-id {} shows why, and so do its logs; then run dtrain cluster "
                    "down {}",
                    id, name));
  });
}

}  // namespace

Json emr_order(const ClusterRequest& request, const Account& account, const SecurityGroup& group) {
  const Spec& spec = request.spec;
  Json tags = Json::array();
  for (const auto& [key, value] : common_tags(request.name, account)) {
    tags.push_back(Json::object({{"Key", key}, {"Value", value}}));
  }
  Json order = Json::object({{"Name", request.name},
                             {"ReleaseLabel", spec.release},
                             {"Applications", Json::array({Json::object({{"Name", "Hadoop"}})})},
                             {"ServiceRole", spec.service_role},
                             {"JobFlowRole", spec.instance_profile},
                             {"EbsRootVolumeSize", spec.root_gb},
                             {"VisibleToAllUsers", true},
                             {"Tags", std::move(tags)},
                             {"Instances", instances_of(request, account, group)}});
  if (!spec.log_uri.empty()) order["LogUri"] = spec.log_uri;
  if (!spec.image.empty()) order["CustomAmiId"] = account.image.id;
  if (shared_kind(spec) != SharedKind::given_efs) return order;
  const Json script =
      Json::object({{"Path", "file:/bin/bash"}, {"Args", Json::array({"-c", mount_script(spec, account.region)})}});
  order["BootstrapActions"] = Json::array({Json::object({{"Name", "mount"}, {"ScriptBootstrapAction", script}})});
  return order;
}

UpResult bring_up_emr(const AwsContext& context, const ClusterRequest& request, const Account& account, Fleet fleet,
                      const Plan& plan) {
  if (fleet.emr && fleet.emr->state == "TERMINATING") {
    throw UsageError(fmt::format("EMR cluster {} is ending", fleet.emr->id), "run the same command again later");
  }
  if (plan.has(Step::key_pair)) import_key(context.aws, request, account);
  bool is_new = false, is_taken = false;  // the group: made here, or by another `up` since the fleet was read
  if (!fleet.group) {
    GroupMade made = make_group(context.aws, request, account);
    is_new = made.is_new;
    is_taken = !is_new;
    fleet.group = std::move(made.group);
    context.say("security group " + fleet.group->id);
  }
  if (plan.has(Step::ssh_rule)) set_ssh_rule(context.aws, *fleet.group, account.ssh_source);
  if (plan.has(Step::own_rules)) set_own_rules(context.aws, *fleet.group, false);
  if (plan.has(Step::options)) set_tags(context.aws, {fleet.group->id}, option_tags(request.options));
  // EMR knows no client tokens, and its clusters may share a name: of several `up`s at once that find no group, only
  // the one that made it may run one, and the others wait for it. Where the group is there already, as after the end of
  // its EMR cluster, nothing tells which of two `up`s at once is the first: each of them runs one. `down` ends both.
  if (!fleet.emr && !is_new) {
    const auto patience = std::min<std::chrono::milliseconds>(kUntilVisible, context.patience);
    fleet.emr = look_until(is_taken ? patience : std::chrono::milliseconds(0),
                           [&] { return find_emr(context.aws, request.name); });
  }
  if (!fleet.emr) fleet.emr = run(context, request, emr_order(request, account, *fleet.group));
  context.say("EMR cluster " + fleet.emr->id);
  if (context.wait) wait_until_ready(context, request.name, fleet.emr->id);
  Launched all{.wanted = request.spec.workers, .got = request.spec.workers};
  return {read_fleet(context.aws, request.name), std::move(all), !plan.actions.empty()};
}

}  // namespace dtrain::cluster
