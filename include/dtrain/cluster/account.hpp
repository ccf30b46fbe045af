// What the plan needs to know of the AWS account.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dtrain/cluster/fleet.hpp>
#include <dtrain/cluster/prices.hpp>
#include <dtrain/cluster/spec.hpp>
#include <dtrain/net/aws_calls.hpp>

namespace dtrain::cluster {

struct Subnet {
  std::string id{}, vpc_id{}, zone{};
  bool gives_public_ip = false;
  std::optional<int> free_addresses{};  // nullopt: unknown
  std::string block{};                  // "10.0.4.0/24": its addresses
};

struct MachineType {
  std::string name{};
  int vcpus = 0, gpus = 0;
  std::string gpu_name{}, architecture{};  // "x86_64", "arm64"
  double gpu_memory_gib = 0;               // of one GPU; 0: unknown
  bool efa = false;
  bool local_disks = false;       // it has disks in the machine itself (instance store)
  std::set<std::string> zones{};  // where it is offered
};

struct Image {
  std::string id{}, name{}, root_device{}, architecture{};
  std::string login{};  // the user that the image creates
  int disk_gb = 0;      // size of its root device; 0: unknown
};

struct FileSystem {
  std::string id{}, state{};
  bool own = false;          // true: it carries this cluster's tag
  double bytes = 0;          // that it holds; of Lustre, that it is made for
  bool lustre = false;       // FSx for Lustre; else EFS
  std::string mount_name{};  // of Lustre
  std::string group{};       // id of the security group for whose cluster it was made; empty: unknown
  struct MountTarget {
    std::string id{}, subnet_id{}, zone{}, address{}, state{};
  };
  std::vector<MountTarget> mount_targets{};
};

// Machines of one type in one zone that the user pays for, used or not.
struct CapacityReservation {
  std::string id{}, type{}, zone{}, state{};  // "active", "expired", ...
  std::string platform{}, tenancy{};          // "Linux/UNIX", "default"
  int total = 0, available = 0;               // machines; those that are free now
};

struct Account {
  std::string number{}, person{};  // the account, and the ARN of the identity whose keys are used
  std::string region{}, credentials{};
  std::string vpc_id{};
  std::vector<Subnet> subnets{};               // one a zone, by zone
  std::map<std::string, MachineType> types{};  // the types that the specification names
  Image image{};
  std::string ssh_source{};   // a CIDR
  std::string key{};          // the key pair to use; empty: none
  std::string public_key{};   // to be imported under that name; empty: the key pair exists
  bool has_users_key = true;  // false: the cluster's key pair holds another key than the user's
  bool has_role = false;      // true: the cluster's own roles are complete; read only if it is to have them
  std::optional<FileSystem> file_system{};           // the shared file system, if it exists
  std::optional<CapacityReservation> reservation{};  // the one of the specification
  std::string kms_key{};                             // ARN of the key of the specification; empty: it names none
  std::map<std::string, double> quotas{};            // vCPUs by quota_of(); one that could not be read is missing
  PriceList prices = built_in_prices();
  Tags tags{};  // the user's own, for every resource
};

// Asks EC2, STS, SSM, EFS and Service Quotas; changes nothing. Throws UsageError for what the specification names and
// the account does not have, and whatever AwsCalls throws.
Account read_account(net::AwsCalls& aws, const Spec& spec, const std::string& cluster);

// The number of the account whose keys are used. Throws whatever AwsCalls throws.
std::string account_number(net::AwsCalls& aws);

// The limits of vCPUs for these types in these markets, as in Account::quotas.
std::map<std::string, double> read_quotas(net::AwsCalls& aws, const std::vector<std::string>& types,
                                          const std::vector<Market>& markets);
// The zones in which each type is offered: pairs of type and zone. No names: of all types.
std::vector<std::pair<std::string, std::string>> read_offers(net::AwsCalls& aws, const std::vector<std::string>& names);

// Pure: an <item> of DescribeInstanceTypes.
MachineType type_of(const net::Element& found);
// The types by name, without their zones. Throws whatever AwsCalls throws, also for a type that does not exist.
std::map<std::string, MachineType> read_types(net::AwsCalls& aws, const std::vector<std::string>& names);

// The file systems that carry the cluster's tag and are not being deleted: of EFS, and of FSx for Lustre.
std::vector<FileSystem> own_file_systems(net::AwsCalls& aws, const std::string& cluster);
std::vector<FileSystem> own_lustre(net::AwsCalls& aws, const std::string& cluster);
// The same of FSx for Lustre, where the fleet has them by its options.
std::vector<FileSystem> lustre_of(net::AwsCalls& aws, const Fleet& fleet);
// Whether no node has written to any of these.
bool has_empty_storage(net::AwsCalls& aws, const Fleet& fleet);
FileSystem read_file_system(net::AwsCalls& aws, const std::string& id, const std::string& cluster);
std::optional<FileSystem> file_system_if_there(net::AwsCalls& aws, const std::string& id);  // nullopt: it was deleted

// The name of the quota that counts machines of this type in this market: "standard", "gpu-g" or "gpu-p" on demand,
// "spot-standard", "spot-gpu-g", "spot-gpu-p" or "spot-gpu-p5" on the spot market; empty: no known one.
std::string quota_of(const std::string& type, Market market);

}  // namespace dtrain::cluster
