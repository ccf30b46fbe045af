#include "cluster_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "option_values.hpp"

namespace dtrain::config {
namespace {

struct SpanUnit {
  char letter;
  std::chrono::seconds length;
};
constexpr SpanUnit kSpanUnits[] = {{'d', std::chrono::hours(24)},
                                   {'h', std::chrono::hours(1)},
                                   {'m', std::chrono::minutes(1)},
                                   {'s', std::chrono::seconds(1)}};

std::chrono::seconds time_span(const std::string& text) {
  const auto refuse = [&] {
    return UsageError(
        fmt::format("'{}' is not a duration: use s, m, h or d, as in 90m, 12h or 2d, or off for none", text));
  };
  if (text == "0" || text == "off") return std::chrono::seconds(0);
  if (text.size() < 2) throw refuse();
  const auto number = parse_integer(text.substr(0, text.size() - 1));
  const auto* const unit = std::ranges::find(kSpanUnits, text.back(), &SpanUnit::letter);
  if (!number || *number < 1 || *number > 1'000'000 || unit == std::end(kSpanUnits)) throw refuse();
  return *number * unit->length;
}

void add_span(OptionSet& set, const char* flags, std::chrono::seconds& field, std::string help) {
  set.add_custom(
      flags, "TIME", std::move(help), [&field](const std::string& text) { field = time_span(text); },
      [&field] { return span_text(field); });
}

std::string elastic_role(const std::string& text) {
  if (text == "none") return {};
  if (text.starts_with('-'))
    throw UsageError(fmt::format("'{}' is not the name of an instance profile", text),
                     "use none, own or the name of an instance profile");
  return not_empty(text);
}

void bind_machines(OptionSet& set, cluster::Spec& spec) {
  set.group("Machines");
  set.add("-w,--workers", spec.workers, "N", "number of workers in addition to the head, which also trains",
          at_least(0));
  set.add("--min-workers", spec.min_workers, "M", "fail unless at least M workers can be started (default all of them)",
          at_least(0));
  set.add("--head-only", spec.head_only, "run no worker on the head");
  set.add_custom(
         "--instance-type", "T[:WEIGHT][,...]",
         "instance types for the workers, in order of preference; workers that are started together get the same type. "
         "A machine of T:2 counts as two workers, wherever workers are counted",
         [&spec](const std::string& text) { set_worker_types(spec, not_empty(text)); },
         [&spec] { return worker_types_text(spec); })
      .comma_list = true;
  set.add("--head-type", spec.head_type, "T", "instance type of the head (default the workers' type)");
  set.add("--image", spec.image, "NAME", "machine image: ubuntu, amazon-linux or ami-...").not_from_project = true;
  set.add_custom(
         "--ami", "ID", "same as --image", [&spec](const std::string& text) { spec.image = not_empty(text); },
         [] { return std::string(); })
      .not_from_project = true;
  set.add("--root-gb", spec.root_gb, "GB",
          fmt::format("size of each node's disk in GB; 0 for the image's size, and on EMR for {}",
                      cluster::kLeastRootGbOfEmr),
          between(0, 16'384));
  set.add("--kms-key", spec.kms_key, "ARN|alias/NAME|ID",
          "your KMS key, which encrypts the disks of the nodes, and the file system that --shared efs or fsx makes "
          "(default the keys that AWS keeps for disks and file systems)")
      .not_from_project = true;
  add_choice(set, "--spot", spec.spot, cluster::kSpotUseNames,
             "use spot instances, which AWS may reclaim: off, prefer them, or only them");
  set.add("--max-price", spec.max_price, "USD",
          "highest price of a spot instance in US dollars an hour; above it AWS starts none and reclaims those that "
          "run. 0 for the price on demand",
          at_least(0));
  set.add("--capacity-reservation", spec.capacity_reservation, "ID",
          "capacity reservation in which the machines of its type are started, cr-... (default none)")
      .not_from_project = true;
  set.add("--placement", spec.placement, "place the nodes close together, for a faster network");
  set.add("--efa", spec.efa, "use the Elastic Fabric Adapter");
}

// "K=V", several of them with commas between or as further options.
std::map<std::string, std::string> tags_from(const std::string& text) {
  std::map<std::string, std::string> tags;
  for (const std::string& part : split(text, kBetweenRepeated)) {
    for (const std::string& one : split(part, ',')) {
      if (trim(one).empty()) continue;
      const auto equals = one.find('=');
      if (equals == one.npos)
        throw UsageError(fmt::format("'{}' has no =", one), "write KEY=VALUE, such as project=birds");
      const std::string key(trim(one.substr(0, equals))), value(trim(one.substr(equals + 1)));
      cluster::check_tag(key, value);
      tags[key] = value;
    }
  }
  return tags;
}

std::string tags_text(const std::map<std::string, std::string>& tags) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : tags) parts.push_back(key + "=" + value);
  return join(parts, ",");
}

void bind_tags(OptionSet& set, cluster::Spec& spec) {
  Option& tags = set.add_custom(
      "--tag", "K=V[,K=V...]",
      "tag of your own for every resource, such as project=birds, for the bills of your account; may be repeated",
      [&spec](const std::string& text) { spec.tags = tags_from(text); }, [&spec] { return tags_text(spec.tags); });
  tags.repeats = tags.comma_list = true;
}

void bind_access(OptionSet& set, cluster::Spec& spec) {
  set.group("Network and access");
  set.add("--key", spec.key, "NAME",
          "EC2 key pair for logging in (default your ~/.ssh/id_*.pub, which is copied to the nodes)")
      .not_from_project = true;
  set.add("--ssh-from", spec.ssh_from, "CIDR|me",
          "addresses from which port 22 of the nodes is open; me is this machine's public address")
      .not_from_project = true;
  Option& role = set.add_custom(
      "--elastic-role", "none|own|PROFILE",
      "rights of the head in the account. own, or no value, creates an IAM role with which the head may list "
      "instances, tag the status of this cluster's instances and end its workers, so that an elastic job follows their "
      "tags; `down` deletes the role. PROFILE is an existing instance profile",
      [&spec](const std::string& text) { spec.elastic_role = elastic_role(text); },
      [&spec] { return spec.elastic_role.empty() ? "none" : spec.elastic_role; });
  // Rights are given by who writes the command, not by a variable that is there.
  role.without_value = "own";
  role.flag_only = true;
  set.add("--heal", spec.heal,
          "let the head keep the cluster as `cluster watch --heal` does, from each of its boots on. Its role (that of "
          "--elastic-role own, which this creates too) may then also start and tag machines of this cluster. A lost "
          "head is started again by its workers, where they have a shared folder, or by another watch")
      .flag_only = true;
  add_span(set, "--replace-head-after", spec.replace_head_after,
           fmt::format(
               "with --heal and --shared: time for which EC2 must show that the head has ended before a worker starts "
               "it again, with an IAM role of the workers that permits only this; at least {}, or off for no such role",
               span_text(cluster::kLeastHeadPatience)));
  set.add("--permissions-boundary", spec.permissions_boundary, "ARN",
          "IAM policy that bounds the roles of --elastic-role own and --heal (default none)")
      .not_from_project = true;
  set.add("--private", spec.private_addresses, "give no node a public address");
  set.add("--vpc", spec.vpc, "ID", "VPC of the nodes (default the account's default VPC)");
  set.add("--subnet", spec.subnet, "ID", "subnet of the nodes (default one subnet in each zone)");
}

void bind_emr(OptionSet& set, cluster::Spec& spec) {
  set.group("Amazon EMR");
  add_choice(set, "--on", spec.on, cluster::kServiceNames,
             "service that runs the nodes; the other options of this group apply to emr");
  set.add("--release", spec.release, "NAME", "EMR release, 7 or later, such as emr-7.1.0");
  set.add("--log-uri", spec.log_uri, "S3-URI", "S3 location for EMR's logs");
  set.add("--service-role", spec.service_role, "ROLE", "IAM role of the EMR service").not_from_project = true;
  set.add("--instance-profile", spec.instance_profile, "PROFILE", "instance profile of the nodes").not_from_project =
      true;
  set.add("--security-group", spec.security_group, "ID",
          "additional security group for all nodes, such as the file system's")
      .not_from_project = true;
}

}  // namespace

std::string span_text(std::chrono::seconds span) {
  if (span.count() == 0) return "off";
  const auto* const unit =
      std::ranges::find_if(kSpanUnits, [&](const SpanUnit& one) { return span.count() % one.length.count() == 0; });
  return fmt::format("{}{}", span / unit->length, unit->letter);
}

void bind_cluster(OptionSet& set, ClusterPlace& place) {
  set.group("Cluster");
  set.add("NAME", place.name, "NAME", "name of the cluster").required = true;
  bind_account(set, place);
}

void bind_account(OptionSet& set, ClusterPlace& place) {
  set.add("--region", place.region, "NAME[,NAME...]",
          "AWS region (default AWS_REGION, else the profile's region; a cluster that is not there is looked for where "
          "`up` made it). Of several, `cluster up` takes the first one with capacity for the cluster, and other "
          "commands the one that has the cluster")
      .comma_list = true;
  set.add("--profile", place.profile, "NAME", "profile in ~/.aws (default AWS_PROFILE)").not_from_project = true;
  set.add("--timeout", place.timeout_seconds, "SECONDS", "longest time to wait for AWS, in seconds", at_least(1));
  set.add("--timing", place.timing, "report the number and the duration of AWS calls");
}

void bind_yes(OptionSet& set, bool& yes, const std::string& help) { set.add("-y,--yes", yes, help).flag_only = true; }

void bind(OptionSet& set, cluster::Spec& spec) {
  bind_machines(set, spec);
  set.group("Storage and preparation");
  set.add(
      "--shared", spec.shared, "WHAT",
      "shared folder of all nodes: none; efs, which is made, or efs:ID; fsx or fsx:GB, an FSx for Lustre file system "
      "that is made (of 1200 GB), or fsx:ID; or a path that the image mounts");
  set.add("--mount", spec.mount, "PATH", "mount point of the shared folder");
  set.add("--prepare", spec.prepare, "CMD",
          "shell command that each node runs before it joins; it stands in user data and tags, so put no secret there")
      .not_from_project = true;
  set.add("--keep-failed", spec.keep_failed, "keep a node running after its start failed, for inspection");
  bind_access(set, spec);
  bind_emr(set, spec);
  set.group("Limits and bills");
  bind_tags(set, spec);
  add_span(set, "--ttl", spec.time_to_live,
           "time from each start of a node until it ends itself, such as 12h; off for no limit. Workers end with the "
           "head at the latest");
  add_span(
      set, "--autostop", spec.autostop,
      fmt::format("idle time after which a node ends itself; off for no limit. A node is idle without a user at a "
                  "terminal and without work of dtrain, such as a training; other programs and ssh sessions without a "
                  "terminal do not count. `up` without a terminal sets {} unless this option is given",
                  span_text(cluster::kUnattendedAutostop)));
}

}  // namespace dtrain::config
