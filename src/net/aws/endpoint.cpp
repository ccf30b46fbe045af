#include <fmt/format.h>

#include <array>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/net/aws.hpp>

#include "home.hpp"
#include "instance.hpp"
#include "profile.hpp"

namespace dtrain::net {
namespace {

struct Partition {
  std::string_view region_prefix, name, suffix, dual_stack_suffix;
  std::string_view home, global_part;  // of services without regions: what signs, and what their host says of it
};
// The last one holds all regions that no other does.
constexpr std::array<Partition, 6> kPartitions{
    {{"cn-", "aws-cn", "amazonaws.com.cn", "api.amazonwebservices.com.cn", "cn-north-1", ".cn-north-1"},
     {"eusc-", "aws-eusc", "amazonaws.eu", "api.amazonwebservices.eu", "eusc-de-east-1", ".eusc-de-east-1"},
     {"us-isob-", "aws-iso-b", "sc2s.sgov.gov", "sc2s.sgov.gov", "us-isob-east-1", ".us-isob-east-1"},
     {"us-iso-", "aws-iso", "c2s.ic.gov", "c2s.ic.gov", "us-iso-east-1", ".us-iso-east-1"},
     {"us-gov-", "aws-us-gov", "amazonaws.com", "api.aws", "us-gov-west-1", ".us-gov"},
     {"", "aws", "amazonaws.com", "api.aws", "us-east-1", ""}}};

const Partition& partition_of(std::string_view region) {
  for (const Partition& partition : kPartitions) {
    if (region.starts_with(partition.region_prefix)) return partition;
  }
  return kPartitions.back();
}

bool is_on(const AwsSettings& settings, const AwsProfile& profile, const std::string& variable,
           const std::string& key) {
  return variable_of(settings, variable).value_or(profile.value(key)) == "true";
}

std::string standard_url(const AwsService& service, const std::string& region, bool fips, bool dual_stack) {
  const Partition& partition = partition_of(region);
  if (service.is_global) return fmt::format("https://{}{}.{}", service.name, partition.global_part, partition.suffix);
  const std::string name = fmt::format("{}{}", service.name, fips ? "-fips" : "");
  if (!dual_stack) return fmt::format("https://{}.{}.{}", name, region, partition.suffix);
  if (service.name == "s3") return fmt::format("https://{}.dualstack.{}.{}", name, region, partition.suffix);
  return fmt::format("https://{}.{}.{}", name, region, partition.dual_stack_suffix);
}

// Empty: the user chose none.
std::string chosen_url(const AwsService& service, const AwsSettings& settings, const AwsProfile& profile) {
  if (!settings.endpoint_url.empty()) return settings.endpoint_url;
  if (is_on(settings, profile, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "ignore_configured_endpoint_urls")) return {};
  if (const auto own = variable_of(settings, fmt::format("AWS_ENDPOINT_URL_{}", service.variable))) return *own;
  if (const auto all = variable_of(settings, "AWS_ENDPOINT_URL")) return *all;
  const std::string own = profile.service_endpoint(service.variable);
  return own.empty() ? profile.value("endpoint_url") : own;
}

}  // namespace

std::string chosen_region(const AwsSettings& settings) {
  if (!settings.region.empty()) return settings.region;
  for (const char* variable : {"AWS_REGION", "AWS_DEFAULT_REGION"}) {
    if (const auto region = variable_of(settings, variable)) return *region;
  }
  return read_profile(settings).value("region");
}

std::string aws_region(const AwsSettings& settings) {
  if (const std::string region = chosen_region(settings); !region.empty()) return region;
  if (const auto region = instance_region(settings)) return *region;
  throw UsageError("no AWS region is known",
                   "set AWS_REGION, or AWS_DEFAULT_REGION, or region = ... in the profile of ~/.aws/config; on an EC2 "
                   "instance its own is taken");
}

std::string signing_region(const AwsService& service, const std::string& region) {
  return service.is_global ? std::string(partition_of(region).home) : region;
}

std::string aws_partition(const std::string& region) { return std::string(partition_of(region).name); }

std::string aws_domain(const std::string& region) { return std::string(partition_of(region).suffix); }

AwsEndpoint aws_endpoint(const AwsService& service, const std::string& region, const AwsSettings& settings) {
  const AwsProfile profile = read_profile(settings);
  std::string url = chosen_url(service, settings, profile);
  if (url.empty()) {
    const bool fips = is_on(settings, profile, "AWS_USE_FIPS_ENDPOINT", "use_fips_endpoint");
    const bool dual_stack = is_on(settings, profile, "AWS_USE_DUALSTACK_ENDPOINT", "use_dualstack_endpoint");
    return {standard_url(service, region, fips, dual_stack), false};
  }
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    throw UsageError(fmt::format("the AWS endpoint \"{}\" is no URL", url), "it begins with https:// or http://");
  }
  while (url.ends_with('/')) url.pop_back();
  return {url, true};
}

}  // namespace dtrain::net
