#include "cluster_options.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "option_values.hpp"

namespace dtrain::config {
namespace {

std::chrono::seconds time_span(const std::string& text) {
  const auto refuse = [&] {
    return UsageError(fmt::format("'{}' is no time: 90m, 12h and 2d are some, and 0 for none", text));
  };
  if (text == "0") return std::chrono::seconds(0);
  if (text.size() < 2) throw refuse();
  const auto number = parse_integer(text.substr(0, text.size() - 1));
  if (!number || *number < 1 || *number > 1'000'000) throw refuse();
  switch (text.back()) {
    case 's':
      return std::chrono::seconds(*number);
    case 'm':
      return std::chrono::minutes(*number);
    case 'h':
      return std::chrono::hours(*number);
    case 'd':
      return std::chrono::hours(24 * *number);
  }
  throw refuse();
}

std::string span_text(std::chrono::seconds span) {
  if (span.count() == 0) return "0";
  return span.count() % 60 ? fmt::format("{}s", span.count()) : fmt::format("{}m", span.count() / 60);
}

void add_span(OptionSet& set, const char* flags, std::chrono::seconds& field, const char* help) {
  set.add_custom(
      flags, "TIME", help, [&field](const std::string& text) { field = time_span(text); },
      [&field] { return span_text(field); });
}

std::string elastic_role(const std::string& text) {
  if (text == "none") return {};
  if (text.starts_with('-')) throw UsageError(fmt::format("'{}' is no instance profile", text), "none, own or a name");
  return text.empty() ? "own" : text;
}

void bind_machines(OptionSet& set, cluster::Spec& spec) {
  set.group("Machines");
  set.add("-w,--workers", spec.workers, "N", "workers beside the head, which trains too", at_least(0));
  set.add("--min-workers", spec.min_workers, "M", "fewer workers are no cluster (all of them)", at_least(0));
  set.add("--head-only", spec.head_only, "the head takes no part in training");
  set.add_custom(
      "--instance-type", "T[,T...]", "of the workers, in order of preference; all have the same",
      [&spec](const std::string& text) { spec.instance_types = split(not_empty(text), ','); },
      [&spec] { return join(spec.instance_types, ","); });
  set.add("--head-type", spec.head_type, "T", "of the head (the workers')");
  set.add("--image", spec.image, "NAME", "ubuntu, amazon-linux or ami-...");
  set.add_custom(
      "--ami", "ID", "the same as --image", [&spec](const std::string& text) { spec.image = not_empty(text); },
      [] { return std::string(); });
  set.add("--root-gb", spec.root_gb, "GB", "disk of each node (0: the image's size)", between(0, 16'384));
  set.add_choice("--spot", spec.spot, {"off", "prefer", "only"}, "spare capacity, which AWS may take back");
  set.add("--placement", spec.placement, "close together, for fast networks");
  set.add("--efa", spec.efa, "the Elastic Fabric Adapter");
}

void bind_access(OptionSet& set, cluster::Spec& spec) {
  set.group("Network and access");
  set.add("--key", spec.key, "NAME", "key pair of the account (your ~/.ssh/id_*.pub is brought)");
  set.add("--ssh-from", spec.ssh_from, "CIDR|me", "from where port 22 of the nodes is open");
  Option& role = set.add_custom(
      "--elastic-role", "none|own|PROFILE",
      "what the head may do in the account. own, or no value: an IAM role is made, which may read what instances there "
      "are, tag the status of this cluster's and end its workers, so that an elastic job there follows their tags by "
      "itself; `down` removes it. Else an instance profile that is there. Unless given, the head has no rights",
      [&spec](const std::string& text) { spec.elastic_role = elastic_role(text); },
      [&spec] { return spec.elastic_role.empty() ? "none" : spec.elastic_role; });
  // Rights are given by who writes the command, not by a variable that is there.
  role.may_be_empty = role.flag_only = true;
  set.add("--private", spec.private_addresses, "no node has a public address");
  set.add("--vpc", spec.vpc, "ID", "network (the default VPC)");
  set.add("--subnet", spec.subnet, "ID", "part of it (one in each zone)");
}

void bind_emr(OptionSet& set, cluster::Spec& spec) {
  set.group("Amazon EMR");
  set.add_choice("--on", spec.on, {"ec2", "emr"}, "what runs the nodes; the rest of these is for emr");
  set.add("--release", spec.release, "NAME", "such as emr-7.1.0; 7 or later");
  set.add("--log-uri", spec.log_uri, "S3-URI", "where EMR keeps logs");
  set.add("--service-role", spec.service_role, "ROLE", "of EMR");
  set.add("--instance-profile", spec.instance_profile, "PROFILE", "of the nodes");
  set.add("--security-group", spec.security_group, "ID", "one more for all nodes, such as the file system's");
}

}  // namespace

void bind_cluster(OptionSet& set, ClusterPlace& place) {
  set.group("Which cluster");
  set.add("NAME", place.name, "NAME", "the cluster").required = true;
  bind_account(set, place);
}

void bind_account(OptionSet& set, ClusterPlace& place) {
  set.add("--region", place.region, "NAME", "of AWS (AWS_REGION, the profile)");
  set.add("--profile", place.profile, "NAME", "of ~/.aws (AWS_PROFILE)");
  set.add("--timeout", place.timeout_seconds, "SECONDS", "to wait for AWS", at_least(1));
  set.add("--timing", place.timing, "say how many calls there were and how long they took");
}

void bind_yes(OptionSet& set, bool& yes, const std::string& help) { set.add("-y,--yes", yes, help).flag_only = true; }

void bind(OptionSet& set, cluster::Spec& spec) {
  bind_machines(set, spec);
  set.group("Storage and preparation");
  set.add("--shared", spec.shared, "WHAT", "folder of all nodes: none, efs, efs:ID, or a path that the image mounts");
  set.add("--mount", spec.mount, "PATH", "where that is");
  set.add("--prepare", spec.prepare, "CMD", "run on each node before it joins");
  set.add("--keep-failed", spec.keep_failed, "a node whose start failed stays on, to be looked at");
  bind_access(set, spec);
  bind_emr(set, spec);
  set.group("Limits");
  add_span(set, "--ttl", spec.time_to_live, "nodes end by themselves after it, such as 12h (0: never)");
  add_span(set, "--autostop", spec.autostop,
           "a node ends once nothing of dtrain trained there and nobody was logged in for so long (0: never)");
}

}  // namespace dtrain::config
