// The specification of a cluster.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/enum_names.hpp>

namespace dtrain::cluster {

// What runs the nodes: instances of EC2, or a cluster of Amazon EMR.
enum class Service { ec2, emr };
constexpr EnumName<Service> kServiceNames[] = {{Service::ec2, "ec2"}, {Service::emr, "emr"}};

// Whether nodes are spot instances. prefer: on-demand instances where there is no spot capacity.
enum class SpotUse { off, prefer, only };
constexpr EnumName<SpotUse> kSpotUseNames[] = {
    {SpotUse::off, "off"}, {SpotUse::prefer, "prefer"}, {SpotUse::only, "only"}};

// How an instance is bought.
enum class Market { on_demand, spot };
constexpr EnumName<Market> kMarketNames[] = {{Market::on_demand, "on-demand"}, {Market::spot, "spot"}};

// As how many workers a machine may count.
inline constexpr int kMostWeight = 100;

// Time to live of idle nodes of a cluster that no person makes at a terminal, unless another one is chosen.
inline constexpr std::chrono::minutes kUnattendedAutostop{30};

// How long a head must be gone before its workers start it again; and the shortest such time, in which a reconciler
// that is silent stops to count as one that acts (kLeaseTime).
inline constexpr std::chrono::minutes kHeadPatience{3}, kLeastHeadPatience{2};

// The least size of a file system of FSx for Lustre, in GB.
inline constexpr int kLeastLustre = 1'200;

struct Spec {
  int workers = 1;                   // beside the head, which trains too
  std::optional<int> min_workers{};  // minimum number of workers; none: all of them
  bool head_only = false;            // the head takes no part in training
  // In order of preference; all workers of a cluster have the same one. dtrain trains on the GPU of the default, an
  // A10G (base/gpu_models.hpp).
  std::vector<std::string> instance_types{"g5.xlarge"};
  std::map<std::string, int> weights{};  // as how many workers a machine of a type counts; one where it is missing
  std::string head_type{};               // empty: the workers'
  std::string image = "ubuntu";          // "ubuntu", "amazon-linux" or "ami-..."
  std::string key{};                     // a key pair of the account; empty: the user's own key is imported
  // "none", "efs", "efs:fs-...", "fsx", "fsx:GB", "fsx:fs-..." (FSx for Lustre) or a folder that the image mounts
  std::string shared = "none";
  std::string mount = "/myEFSvolume";  // where the shared folder is
  std::string prepare{};               // a command for every node; empty: none
  std::string ssh_from = "me";         // a CIDR, or "me": the public address of the user
  SpotUse spot = SpotUse::off;
  double max_price = 0;                  // US dollars an hour for a spot instance; 0: at most the price on demand
  std::string capacity_reservation{};    // "cr-...": machines of its type are started in it; empty: none
  bool placement = false;                // close together, for fast networks
  bool efa = false;                      // the fast network itself
  bool private_addresses = false;        // no node has a public address
  std::string vpc{}, subnet{};           // empty: the default VPC, its subnets
  std::chrono::seconds time_to_live{0};  // nodes terminate after this time; 0: never
  int root_gb = 0;                       // disk of each node; 0: the image's size
  std::string kms_key{};                 // encrypts disks and a new file system; empty: the key that AWS keeps for that
  std::chrono::seconds autostop{0};      // a node terminates after being idle for this time; 0: never
  std::string elastic_role{};            // of the head, for following tags: "own", or an instance profile; empty: none
  bool heal = false;                     // the head keeps the cluster as it is wanted, which takes a role
  // With `heal`: the workers start the head again when it is gone for so long; 0: they do not.
  std::chrono::seconds replace_head_after{kHeadPatience};
  std::string permissions_boundary{};         // ARN of a policy that bounds the cluster's own roles; empty: none
  bool keep_failed = false;                   // nodes whose boot failed stay on
  std::map<std::string, std::string> tags{};  // the user's own, on every resource
  Service on = Service::ec2;                  // the fields below are of Service::emr
  std::string release{};                      // "emr-7.1.0"
  std::string log_uri{};                      // "s3://..."; empty: logs are not kept
  std::string service_role = "EMR_DefaultRole";
  std::string instance_profile = "EMR_EC2_DefaultRole";
  std::string security_group{};  // one more for all nodes; empty: none
};

// The types of the head, then of the workers in order of preference, each once.
std::vector<std::string> types_of(const Spec& spec);
// The worker types as the user writes them, "c5.large,c5.xlarge:2", and back. The first throws UsageError.
void set_worker_types(Spec& spec, const std::string& text);
std::string worker_types_text(const Spec& spec);
int weight_of(const Spec& spec, const std::string& type);
// The machines that count as so many workers, or a few more.
int machines_for(int workers, int weight);
// The minimum number of workers.
int least_workers(const Spec& spec);
enum class SharedKind { none, new_efs, given_efs, new_lustre, given_lustre, path };
// The shared folder as the user writes it: see Spec::shared.
struct Shared {
  SharedKind kind = SharedKind::none;
  std::string id{};  // of the given file system, "fs-..."
  bool on_efs() const { return kind == SharedKind::new_efs || kind == SharedKind::given_efs; }
  bool on_lustre() const { return kind == SharedKind::new_lustre || kind == SharedKind::given_lustre; }
};
Shared shared_of(std::string_view text);
// Of the options that a cluster's tags keep; without one, the cluster has the default, none.
Shared shared_of(const std::map<std::string, std::string>& options);
inline SharedKind shared_kind(const Spec& spec) { return shared_of(spec.shared).kind; }
int lustre_gb(const Spec& spec);  // size of a new one
inline constexpr int kLeastRootGbOfEmr = 50;
// The disk of each node on EMR, which takes no size from the image.
inline int root_gb_of_emr(const Spec& spec) { return spec.root_gb == 0 ? kLeastRootGbOfEmr : spec.root_gb; }
inline bool wants_own_role(const Spec& spec) {
  return spec.elastic_role == "own" || (spec.heal && spec.elastic_role.empty());
}
// Whether the workers get a role, with which they start a lost head again. It finds the program, the queue and the jobs
// in the shared folder.
inline bool workers_replace_head(const Spec& spec) {
  return spec.heal && wants_own_role(spec) && shared_kind(spec) != SharedKind::none &&
         spec.replace_head_after.count() > 0;
}
// Whether it is the ARN of a thing of IAM; `kind` is for instance "role/".
bool is_iam_arn(const std::string& text, std::string_view kind);
// Throws UsageError for a text that is no id of a capacity reservation.
void check_reservation_id(const std::string& id);
// Throws UsageError for a text that is no ARN of a policy.
void check_boundary(const std::string& arn);
// Throws UsageError for a text that is no ARN, alias or id of a KMS key of the user. The second is the region that an
// ARN names; empty: the text names none.
void check_kms_key(const std::string& key);
std::string region_of_kms_key(const std::string& key);
// Throws UsageError for a tag that AWS or the metadata of instances does not take, or that is dtrain's own.
void check_tag(const std::string& key, const std::string& value);
// The text as a value that all services take: with '_' for other characters, and cut to the longest size, in whole
// characters of UTF-8.
std::string tag_value(std::string_view text);
// Throws UsageError for a tag whose value EC2 takes, and not another service of whose resources `up` is to make some.
void check_tags_of_services(const Spec& spec);
// Throws UsageError for a value that is invalid whatever the other options are. check_spec() checks the rest too.
void check_values(const Spec& spec);
// Throws UsageError that names the invalid option.
void check_spec(const Spec& spec);
// Throws UsageError for a name that cannot be part of resource and host names.
void check_cluster_name(const std::string& name);

}  // namespace dtrain::cluster
