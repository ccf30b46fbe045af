#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include <dtrain/base/error.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/cluster/emr.hpp>
#include <dtrain/cluster/wish.hpp>
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

EmrCluster run_flow(const AwsContext& context, const ClusterRequest& request, const Json& order) {
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

// EMR knows no client tokens, and its clusters may share a name. So of several `up`s at once only the one that has the
// lease, a tag of the security group, runs one, and the others wait until it shows. Where two write the lease at the
// same time, the one that wrote last has it. It ends by itself, for an `up` that was killed.
class EmrStart {
 public:
  EmrStart(const AwsContext& context, const ClusterRequest& request, const Account& account, const SecurityGroup& group)
      : context_(context), request_(request), account_(account), group_(group) {}

  EmrCluster run() {
    for (GrowingPause pause;; pause.wait()) {
      LeaseState state = look();
      if (!there_ && state == LeaseState::free) state = claim();
      if (there_) return *there_;
      // A tag that AWS does not show for so long keeps no `up` waiting.
      if (state != LeaseState::taken) return run_leased();
      if (!waits_) context_.say("another `up` of this cluster makes it; waiting for that");
      waits_ = true;
    }
  }

 private:
  LeaseState look() {
    const Fleet fleet = read_fleet(context_.aws, request_.name);
    there_ = fleet.emr ? fleet.emr : find_emr(context_.aws, request_.name);
    const Tags tags = fleet.group ? fleet.group->tags : Tags();
    const auto lease = tags.find(kStarter);
    return lease_state(lease == tags.end() ? Lease() : lease_from(lease->second), me_, aws_time(context_.aws));
  }

  LeaseState claim() {
    write_lease_of(me_);
    pause_for(kUntilLeaseShows);
    LeaseState state = LeaseState::free;
    look_until(patience(), [&] {
      state = look();
      return state != LeaseState::free;
    });
    return state;
  }

  void write_lease_of(const std::string& holder) const {
    set_tags(context_.aws, {group_.id}, {{kStarter, lease_text({holder, aws_time(context_.aws)})}});
  }

  // The lease ends once the others can see the cluster, or with a refusal. Where the answer was lost, there may be a
  // cluster that does not show yet.
  EmrCluster run_leased() {
    try {
      EmrCluster made = run_flow(context_, request_, emr_order(request_, account_, group_));
      if (shows_soon()) give_lease_back();
      return made;
    } catch (const net::AwsError& problem) {
      if (problem.facts().problem != net::AwsProblem::transient) give_lease_back();
      throw;
    }
  }

  bool shows_soon() {
    return look_until(patience(), [&] { return find_emr(context_.aws, request_.name).has_value(); });
  }

  void give_lease_back() const {
    std::ignore = attempt([&] { write_lease_of(""); });
  }

  std::chrono::milliseconds patience() const {
    return std::min<std::chrono::milliseconds>(kUntilVisible, context_.patience);
  }

  static constexpr const char* kStarter = "dtrain:starter";
  static constexpr std::size_t kNameBytes = 8;
  static constexpr std::chrono::seconds kUntilLeaseShows{2};

  const AwsContext& context_;
  const ClusterRequest& request_;
  const Account& account_;
  const SecurityGroup& group_;
  const std::string me_ = to_hex(unpredictable_bytes(kNameBytes));
  std::optional<EmrCluster> there_;
  bool waits_ = false;
};

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
                             {"EbsRootVolumeSize", root_gb_of_emr(spec)},
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
  if (!fleet.group) {
    fleet.group = make_group(context.aws, request, account).group;
    context.say("security group " + fleet.group->id);
  }
  if (plan.has(Step::ssh_rule)) set_ssh_rule(context.aws, *fleet.group, account.ssh_source);
  if (plan.has(Step::own_rules)) set_own_rules(context.aws, *fleet.group, false);
  if (plan.has(Step::options)) set_tags(context.aws, {fleet.group->id}, option_tags(request.options));
  if (!fleet.emr) fleet.emr = EmrStart(context, request, account, *fleet.group).run();
  context.say("EMR cluster " + fleet.emr->id);
  if (context.wait) wait_until_ready(context, request.name, fleet.emr->id);
  Launched all{.wanted = request.spec.workers, .got = request.spec.workers};
  return {read_fleet(context.aws, request.name), std::move(all), !plan.actions.empty()};
}

}  // namespace dtrain::cluster
