// Files on every node for programs that were written for the CloudFormation templates: the names of all workers in
// /etc/hosts and /opt/deeplearning/workers, and variables in /etc/profile.d/deeplearning.sh.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/json.hpp>

namespace dtrain::cluster {

struct ClusterFacts {
  std::string cluster, region;
  std::string head{};                  // numeric address
  std::vector<std::string> workers{};  // numeric addresses, in the order of their names
  std::string shared_folder{};         // empty: none
  std::string launch_template{};       // its id; empty: unknown
  std::string elastic_tag{};
  int gpus = 0;  // of the node that writes the files
  std::string workers_path = "/opt/deeplearning/workers";
};

// The form in which the head sends the facts to its nodes, without `gpus`, which each node adds.
Json to_json(const ClusterFacts& facts);
ClusterFacts cluster_facts_from_json(const Json& json);  // throws DataError

struct CompatFiles {
  std::string workers;  // /opt/deeplearning/workers
  std::string profile;  // /etc/profile.d/deeplearning.sh
  std::string names;    // lines of /etc/hosts
};

CompatFiles compat_files(const ClusterFacts& facts);
// The `export NAME=value` lines of the profile.
std::vector<std::string> cluster_variables(const ClusterFacts& facts);
// /etc/hosts with these lines in place of those of the last call; all other lines stay.
std::string with_cluster_names(std::string_view hosts_file, std::string_view names);
// "deeplearning-worker3", counted from 1.
std::string worker_alias(std::size_t number);

}  // namespace dtrain::cluster
