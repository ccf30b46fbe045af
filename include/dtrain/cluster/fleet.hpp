// A cluster as its tags tell of it: nothing about a cluster is kept anywhere else.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/net/aws_calls.hpp>

namespace dtrain::cluster {

// The tags of a cluster's resources. Keys hold only what the instance metadata service allows in a key.
namespace tag {
inline constexpr const char* kCluster = "dtrain:cluster";    // on everything: the cluster's name
inline constexpr const char* kRole = "dtrain:role";          // on instances: "head" or "worker"
inline constexpr const char* kNode = "dtrain:node";          // on instances: "head", "w0003"
inline constexpr const char* kBase = "dtrain:base";          // on workers that `up` started: "yes"
inline constexpr const char* kLaunch = "dtrain:launch";      // on instances: the launch that made them
inline constexpr const char* kOwner = "dtrain:owner";        // who made the cluster
inline constexpr const char* kOption = "dtrain:option:";     // on the security group, before an option's name: its text
inline constexpr const char* kLaunches = "dtrain:launches";  // on the security group: how many launches were finished
inline constexpr const char* kLastNode = "dtrain:last-node";  // on the security group: the highest worker number so far
inline constexpr const char* kReplaced = "dtrain:replaced-by";  // on a worker that is to go: the instance that comes
// On the security group: the private address of the head, as the launch template tells it to nodes.
inline constexpr const char* kHead = "dtrain:head";
inline constexpr const char* kStatus = "elastic_worker_status";  // ADD_QUEUED, ADDED, REMOVAL_QUEUED, REMOVED
inline constexpr const char* kNodeType = "NodeType";             // "Master" or "Worker"
inline constexpr const char* kName = "Name";
}  // namespace tag
// On workers that may be removed; a person who deletes it removes the worker.
std::string elastic_tag(const std::string& cluster);
std::optional<std::string> cluster_of_elastic_tag(std::string_view tag);  // nullopt: it is no such tag

using Tags = std::map<std::string, std::string>;

enum class Role { head, worker };

struct Node {
  std::string name{};  // "head", "w0003"; the instance's id until it is named
  Role role = Role::worker;
  bool base = false;     // `up` started it: it is not removed by way of tags
  bool elastic = false;  // has the elastic tag
  std::string instance_id{};
  std::string state{};  // pending, running, stopping, stopped, shutting-down, terminated
  std::string private_ip{}, public_ip{}, zone{}, subnet_id{}, type{}, image_id{};
  std::string market{};          // "spot" or "on-demand"
  std::string elastic_status{};  // of tag::kStatus; empty: none
  std::string launch_time{};     // "2026-01-31T12:00:00.000Z"
  std::string launch{};          // of tag::kLaunch
  Tags tags{};

  bool named() const { return name != instance_id; }
  bool alive() const { return state == "pending" || state == "running"; }
  // It still costs or will again: all but those that end or have ended.
  bool there() const { return state != "terminated" && state != "shutting-down"; }
};

// "w0003" and back; nullopt: not a worker's name.
std::string worker_name(int number);
std::optional<int> worker_number(std::string_view name);

// What `up` makes beside instances. Ids are empty where there is none.
struct SecurityGroup {
  std::string id{}, name{}, vpc_id{};
  Tags tags{};
  std::vector<std::string> ssh_sources{};  // CIDRs from which port 22 is open
  bool lets_own_in = false;                // everything from the group itself
  bool lets_own_out = false;               // and explicitly to it, which EFA asks for
};
struct LaunchTemplate {
  std::string id{}, name{};
  Tags tags{};
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
  std::vector<Node> nodes{};   // that are there: head first, then by name
  std::vector<Node> ending{};  // shutting down or terminated; AWS shows those for an hour or so
  std::optional<SecurityGroup> group{};
  std::optional<LaunchTemplate> launch_template{};
  std::optional<EmrCluster> emr{};  // what runs the nodes; none: they are instances of our own
  // The texts of the options that `up` was given, by name, where they are not the default.
  std::map<std::string, std::string> options{};

  const Node* head() const;                       // nullptr: none is there
  std::string told_head() const;                  // of tag::kHead; empty: it was not written down
  const Node* find(std::string_view node) const;  // by name or instance id; nullptr: none is there
  std::vector<const Node*> workers() const;
  bool on_emr() const;  // `up` was told so; `emr` is empty before it is made and after it has ended
  bool exists() const { return group || launch_template || !nodes.empty(); }
};

// Asks EC2. Blocks for a few calls. Throws what AwsCalls does.
Fleet read_fleet(net::AwsCalls& aws, const std::string& name);
// The names of all clusters in the region, sorted.
std::vector<std::string> cluster_names(net::AwsCalls& aws);

// Pure: what an <instancesSet><item> of DescribeInstances or RunInstances says.
Node node_of(const net::Element& instance);
Tags tags_of(const net::Element& resource);
// Texts as tags of at most 256 characters each, and back.
Tags option_tags(const std::map<std::string, std::string>& options);
std::map<std::string, std::string> options_of(const Tags& tags);

}  // namespace dtrain::cluster
