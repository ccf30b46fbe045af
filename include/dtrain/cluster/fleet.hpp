// A cluster as its tags describe it. No other state of a cluster is stored anywhere.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/cluster/spec.hpp>
#include <dtrain/net/aws_calls.hpp>

namespace dtrain::cluster {

// The tags of a cluster's resources. Keys hold only what the instance metadata service allows in a key.
namespace tag {
inline constexpr const char* kCluster = "dtrain:cluster";    // on everything: the cluster's name
inline constexpr const char* kRole = "dtrain:role";          // on instances: "head" or "worker"
inline constexpr const char* kNode = "dtrain:node";          // on instances: "head", "w0003"
inline constexpr const char* kBase = "dtrain:base";          // on workers that `up` started: "yes"
inline constexpr const char* kLaunch = "dtrain:launch";      // on instances: the launch that made them
inline constexpr const char* kOwner = "dtrain:owner";        // the identity that made the cluster
inline constexpr const char* kOption = "dtrain:option:";     // on the security group, before an option's name: its text
inline constexpr const char* kLaunches = "dtrain:launches";  // on the security group: how many launches were finished
inline constexpr const char* kLastNode = "dtrain:last-node";  // on the security group: the highest worker number so far
inline constexpr const char* kWeight = "dtrain:weight";       // on workers that count as several: as how many
inline constexpr const char* kReplaced = "dtrain:replaced-by";  // on a worker that is to go: the instance that comes
inline constexpr const char* kReplaces = "dtrain:replaces";     // on the instance that comes: the one that is to go
inline constexpr const char* kAdopted =
    "dtrain:adopted";  // on a machine that dtrain took over and did not start: "yes"
inline constexpr const char* kAdmission = "dtrain:admission";  // on the security group: the admission secret
inline constexpr const char* kRules = "dtrain:rules";  // on the security group: "described", as all of dtrain's are
inline constexpr const char* kInterrupted =
    "dtrain:interrupted";  // on added workers: "yes" if their `add` was stopped before it was done
inline constexpr const char* kUp = "dtrain:up";        // on the security group: the lease of up_lease.hpp
inline constexpr const char* kGroup = "dtrain:group";  // on file systems: id of the group for which they were made
// On the security group: the private address of the head that the launch template gives to nodes.
inline constexpr const char* kHead = "dtrain:head";
inline constexpr const char* kStatus = "elastic_worker_status";  // ADD_QUEUED, ADDED, REMOVAL_QUEUED, REMOVED
inline constexpr const char* kNodeType = "NodeType";             // "Master" or "Worker"
inline constexpr const char* kName = "Name";
}  // namespace tag
// On workers that may be removed; deleting the tag removes the worker.
std::string elastic_tag(const std::string& cluster);
[[nodiscard]] std::optional<std::string> cluster_of_elastic_tag(std::string_view tag);  // nullopt: another tag

using Tags = std::map<std::string, std::string>;

enum class Role { head, worker };

struct Node {
  std::string name{};  // "head", "w0003"; the instance's id until a name is given
  Role role = Role::worker;
  bool base = false;     // started by `up`: tags do not remove it
  bool elastic = false;  // has the elastic tag
  std::string instance_id{};
  std::string state{};  // pending, running, stopping, stopped, shutting-down, terminated
  std::string private_ip{}, public_ip{}, zone{}, subnet_id{}, type{}, image_id{};
  Market market = Market::on_demand;
  std::string elastic_status{};  // of tag::kStatus; empty: none
  std::string launch_time{};     // "2026-01-31T12:00:00.000Z"
  std::string ended_at{};        // "2026-01-31 12:00:00 GMT", when it stopped or ended; empty: unknown, or it runs
  std::string end_reason{};      // "Client.InstanceInitiatedShutdown", why it stopped or ended; empty: it runs
  std::string end_message{};     // "Client.VolumeLimitExceeded: Volume limit exceeded", EC2's words for it
  std::string launch{};          // of tag::kLaunch
  int weight = 1;                // as how many workers it counts
  bool disk_in_machine = false;  // its root disk is an instance store, and not EBS
  Tags tags{};

  bool named() const { return name != instance_id; }
  bool alive() const { return state == "pending" || state == "running"; }
  // Whether it still costs money or will again: every state except terminating and terminated.
  bool there() const { return state != "terminated" && state != "shutting-down"; }
};

// "w0003" and back; nullopt: not a worker's name.
std::string worker_name(int number);
[[nodiscard]] std::optional<int> worker_number(std::string_view name);

// Resources that `up` makes beside instances. Empty ids: they do not exist.
struct SecurityGroup {
  std::string id{}, name{}, vpc_id{};
  Tags tags{};
  std::vector<std::string> ssh_sources{};      // CIDRs from which port 22 alone is open
  std::vector<std::string> own_ssh_sources{};  // those of them that dtrain opened
  bool lets_own_in = false;                    // true: all traffic from the group itself is allowed
  bool lets_own_out = false;                   // true: and explicitly to it, which EFA requires
};
struct LaunchTemplate {
  std::string id{}, name{};
  Tags tags{};
  std::string version = "$Default";
};

// A cluster that Amazon EMR runs.
struct EmrCluster {
  std::string id{};     // "j-..."
  std::string state{};  // STARTING, BOOTSTRAPPING, RUNNING, WAITING, TERMINATING
  std::string log_uri{};
  bool takes_work() const { return state == "RUNNING" || state == "WAITING"; }
};

struct Fleet {
  std::string name{};
  std::vector<Node> nodes{};   // existing instances: head first, then by name
  std::vector<Node> ending{};  // shutting down or terminated; AWS lists those for about an hour
  std::optional<SecurityGroup> group{};
  std::optional<LaunchTemplate> launch_template{};  // by which workers start
  std::optional<LaunchTemplate> head_template{};    // by which workers start a lost head again
  std::optional<EmrCluster> emr{};                  // the EMR cluster that runs the nodes; none: they are EC2 instances
  // The texts of the options given to `up`, by name, as far as they differ from the default.
  std::map<std::string, std::string> options{};

  const Node* head() const;                       // nullptr: there is none
  std::string tagged_head() const;                // value of tag::kHead; empty: it is not set
  const Node* find(std::string_view node) const;  // by name or instance id; nullptr: not found
  std::vector<const Node*> workers() const;
  int counted_workers() const;  // machines that count as several count so
  bool on_emr() const;          // true: `up` chose EMR; `emr` is empty before it is made and after it has ended
  bool exists() const { return group || launch_template || head_template || !nodes.empty(); }
};

// Reads the fleet from EC2. Blocks for a few calls. Throws whatever AwsCalls throws.
Fleet read_fleet(net::AwsCalls& aws, const std::string& name);
// The instances that pass these filters of DescribeInstances, also those that have ended.
std::vector<Node> read_nodes(net::AwsCalls& aws, std::vector<net::HttpField> filters);
// Throws UsageError: nothing of such a cluster is there.
void require_there(const Fleet& fleet, const net::AwsCalls& aws);
// Adds to `fleet` what `known` has and AWS does not show yet: group, launch templates, nodes.
Fleet with_known(Fleet fleet, const Fleet& known);
// Reads the fleet again until it shows everything in `known`, for a minute at most; then adds the rest.
Fleet read_fleet_with(net::AwsCalls& aws, const Fleet& known);
// All clusters of the region by name, from three calls; EMR's nodes are not among them.
std::vector<Fleet> read_fleets(net::AwsCalls& aws);
// The names of the regions that are enabled for the account, sorted.
std::vector<std::string> region_names(net::AwsCalls& aws);

// Whether dtrain took the machine over. `down` gives it back, and ends only what dtrain started.
bool is_adopted(const Node& node);
// Pure: parses an <instancesSet><item> of DescribeInstances or RunInstances.
Node node_of(const net::Element& instance);
Tags tags_of(const net::Element& resource);
SecurityGroup group_of(const net::Element& found);  // an <item> of DescribeSecurityGroups
// Texts as tags of at most 256 characters each, and back.
Tags option_tags(const std::map<std::string, std::string>& options);
std::map<std::string, std::string> options_of(const Tags& tags);

}  // namespace dtrain::cluster
