// What a person asks of a cluster.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::cluster {

struct Spec {
  int workers = 1;                            // beside the head, which trains too
  std::optional<int> min_workers{};           // fewer are no cluster; none: all of them
  bool head_only = false;                     // the head takes no part in training
  std::vector<std::string> instance_types{};  // in order of preference; all workers of a cluster have the same one
  std::string head_type{};                    // empty: the workers'
  std::string image = "ubuntu";               // "ubuntu", "amazon-linux" or "ami-..."
  std::string key{};                          // a key pair of the account; empty: the person's own key is brought
  std::string shared = "none";                // "none", "efs", "efs:fs-..." or a folder that the image mounts
  std::string mount = "/myEFSvolume";         // where the shared folder is
  std::string prepare{};                      // a command for every node; empty: none
  std::string ssh_from = "me";                // a CIDR, or "me": the address of the person
  std::string spot = "off";                   // "off", "prefer" or "only"
  bool placement = false;                     // close together, for fast networks
  bool efa = false;                           // the fast network itself
  bool private_addresses = false;             // no node has a public address
  std::string vpc{}, subnet{};                // empty: the default VPC, its subnets
  std::chrono::seconds time_to_live{0};       // nodes end by themselves after it; 0: never
  int root_gb = 0;                            // of each node's disk; 0: the image's size
  std::chrono::seconds autostop{0};           // a node ends once it was idle for so long; 0: never
  std::string elastic_role{};                 // of the head, to follow tags: "own", or an instance profile; empty: none
  bool keep_failed = false;                   // nodes whose boot failed stay on
  std::string on = "ec2";                     // what runs the nodes: "ec2", or "emr", for which what follows is
  std::string release{};                      // "emr-7.1.0"
  std::string log_uri{};                      // "s3://..."; empty: logs are not kept
  std::string service_role = "EMR_DefaultRole";
  std::string instance_profile = "EMR_EC2_DefaultRole";
  std::string security_group{};  // one more for all nodes; empty: none
};

// Of the head, then of the workers in order of preference, each once.
std::vector<std::string> types_of(const Spec& spec);
// At least this many workers make a cluster.
int least_workers(const Spec& spec);
enum class SharedKind { none, new_efs, given_efs, path };
SharedKind shared_kind(const Spec& spec);
inline bool wants_own_role(const Spec& spec) { return spec.elastic_role == "own"; }
// Throws UsageError naming the option that cannot be meant.
void check_spec(const Spec& spec);
// Throws UsageError: names become names of resources and host names.
void check_cluster_name(const std::string& name);

}  // namespace dtrain::cluster
