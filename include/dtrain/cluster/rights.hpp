// The rights that dtrain needs in an AWS account, as IAM policies: those of a person who uses `dtrain cluster`, and
// those of the head and of the workers of a cluster. This is the only list of the calls of these commands:
// tests/cluster compares it with the sources, and refuses every call that it does not allow. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>

namespace dtrain::cluster {

// AWS's limit for a customer managed policy, in characters that are no white space.
inline constexpr std::size_t kMostPolicy = 6'144;

// What the rights are narrowed to.
struct RightsScope {
  std::string region{};                // empty: all regions
  std::string cluster{};               // empty: all clusters that dtrain makes
  std::string account{};               // a number; empty: the account that the policy is in
  std::string partition{};             // "aws-cn"; empty: that of the region
  std::string permissions_boundary{};  // ARN of a policy that bounds the roles that `up` makes; empty: none is required
  std::vector<std::string> roles{};    // ARNs of further roles that `up` may give to machines
  std::vector<std::string> buckets{};  // to which `prepare-s3` may send
  std::vector<std::string> keys{};     // ARNs of KMS keys that may encrypt disks and file systems
  bool heals = false;                  // the head keeps its cluster as it is wanted
  bool adopts = false;                 // stacks of CloudFormation may become clusters, and be given back
};

// Throws UsageError for an ARN that is none, and for a region or bucket that cannot be one.
void check_scope(const RightsScope& scope);
Json user_rights(const RightsScope& scope);

// The rights of a head that follows the tags of its instances: describe instances, set the status tag of the cluster's
// instances, and terminate its workers. One that heals may also start workers of its cluster and write down what it
// did, by the tags that healing needs and no others.
Json head_rights(const RightsScope& scope);
// The rights of a worker that starts a lost head again: describe the cluster, start a head by the launch template that
// `up` made for it and by nothing else, and write down what was done.
Json worker_rights(const RightsScope& scope);
// The trust policy of these roles.
Json head_trust();

}  // namespace dtrain::cluster
