// What has to be known of the account before anything is planned.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/spec.hpp>
#include <dtrain/net/aws_calls.hpp>

namespace dtrain::cluster {

struct Subnet {
  std::string id{}, vpc_id{}, zone{};
  bool gives_public_ip = false;
};

struct MachineType {
  std::string name{};
  int vcpus = 0, gpus = 0;
  std::string gpu_name{}, architecture{};  // "x86_64", "arm64"
  bool efa = false;
  std::set<std::string> zones{};  // that have it
};

struct Image {
  std::string id{}, name{}, root_device{}, architecture{};
  std::string login{};  // its user
  int disk_gb = 0;      // of its root device; 0: it is not told
};

struct FileSystem {
  std::string id{}, state{};
  bool own = false;  // this cluster's tag is on it
  double bytes = 0;
  struct MountTarget {
    std::string id{}, subnet_id{}, zone{}, address{}, state{};
  };
  std::vector<MountTarget> mount_targets{};
};

struct Account {
  std::string number{}, person{};  // the account and the ARN whose keys these are
  std::string region{}, credentials{};
  std::string vpc_id{};
  std::vector<Subnet> subnets{};               // one a zone, by zone
  std::map<std::string, MachineType> types{};  // those that the specification names
  Image image{};
  std::string ssh_source{};                 // a CIDR
  std::string key{};                        // the key pair to use; empty: none
  std::string public_key{};                 // to be brought as that pair; empty: it is there
  bool has_role = false;                    // the cluster's own one is complete; asked only where it is wanted
  std::optional<FileSystem> file_system{};  // the shared one, where it is there already
  std::map<std::string, double> quotas{};  // vCPUs by "standard", "gpu-g", "gpu-p"; what could not be read is not there
};

// Asks EC2, STS, SSM, EFS and the quotas, nothing of which changes anything. Throws UsageError for what the
// specification names and the account does not have, and what AwsCalls throws.
Account read_account(net::AwsCalls& aws, const Spec& spec, const std::string& cluster);

// By name. Throws what AwsCalls throws, so for a type that there is not; their zones are not read.
std::map<std::string, MachineType> read_types(net::AwsCalls& aws, const std::vector<std::string>& names);

// Those that carry the cluster's tag.
std::vector<FileSystem> own_file_systems(net::AwsCalls& aws, const std::string& cluster);
FileSystem read_file_system(net::AwsCalls& aws, const std::string& id, const std::string& cluster);

// Which of the account's limits counts machines of that type; empty: none that we know.
std::string quota_of(const std::string& type);

}  // namespace dtrain::cluster
