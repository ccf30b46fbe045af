#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/cluster/rights.hpp>
#include <dtrain/cluster/spec.hpp>

namespace dtrain::cluster {

static bool holds_only(const std::string& text, std::string_view marks) {
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || marks.find(c) != std::string_view::npos;
  });
}

void check_scope(const RightsScope& scope) {
  if (!scope.cluster.empty()) check_cluster_name(scope.cluster);
  if (!scope.region.empty() && !holds_only(scope.region, "-"))
    throw UsageError(fmt::format("setting 'region' '{}' is no region", scope.region), "such as eu-west-1");
  if (!scope.permissions_boundary.empty()) check_boundary(scope.permissions_boundary);
  for (const std::string& role : scope.roles) {
    if (!is_iam_arn(role, "role/")) {
      throw UsageError(fmt::format("setting 'pass-role' '{}' is no ARN of a role", role),
                       "such as arn:aws:iam::123456789012:role/nodes");
    }
  }
  for (const std::string& key : scope.keys) {
    check_kms_key(key);
    if (region_of_kms_key(key).empty() || key.find(":key/") == key.npos) {
      throw UsageError(fmt::format("setting 'kms-key' '{}' is no ARN of a key, which policies name", key),
                       "aws kms describe-key --key-id alias/NAME prints it");
    }
  }
  for (const std::string& bucket : scope.buckets) {
    if (!holds_only(bucket, "-."))
      throw UsageError(fmt::format("setting 'bucket' '{}' is no name of a bucket", bucket),
                       "give the name without s3:// and folders");
  }
}

}  // namespace dtrain::cluster
