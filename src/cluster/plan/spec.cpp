#include <dtrain/cluster/spec.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::cluster {
namespace {

constexpr int kLeastRelease = 7;

int release_number(const std::string& release) {
  if (!release.starts_with("emr-")) return 0;
  return static_cast<int>(parse_integer(split(release.substr(4), '.').front()).value_or(0));
}

// Refuses what EMR does not support.
void check_emr(const Spec& spec) {
  const auto refuse = [](const std::string& what, const std::string& hint) { throw UsageError(what, hint); };
  if (release_number(spec.release) < kLeastRelease) {
    refuse(fmt::format("setting 'release' '{}' is not EMR {} or later", spec.release, kLeastRelease),
           "such as setting 'release' emr-7.1.0");
  }
  if (root_gb_of_emr(spec) < kLeastRootGbOfEmr) {
    refuse(fmt::format("setting 'root-gb' {} is too small for EMR", spec.root_gb),
           fmt::format("{} or more", kLeastRootGbOfEmr));
  }
  if (!spec.log_uri.empty() && !spec.log_uri.starts_with("s3://")) {
    refuse(fmt::format("setting 'log-uri' {} is no S3 URI", spec.log_uri), "it begins with s3://");
  }
  if (!spec.image.empty() && !spec.image.starts_with("ami-")) {
    refuse(fmt::format("setting 'image' {} is no image for EMR", spec.image), "give ami-..., or leave it out");
  }
  const SharedKind shared = shared_kind(spec);
  if (shared != SharedKind::none && shared != SharedKind::given_efs) {
    refuse(fmt::format("setting 'shared' {} is not available on EMR", spec.shared), "none or efs:ID");
  }
  if (spec.private_addresses) {
    refuse("setting 'private' is not for EMR, where the subnet decides who has a public address",
           "give setting 'subnet' of a private one");
  }
  if (spec.keep_failed) {
    refuse("setting 'keep-failed' is not for EMR, which ends a node that could not start",
           "give setting 'log-uri': EMR writes there what failed");
  }
  if (spec.heal) refuse("setting 'heal' is not for EMR, which keeps its clusters itself", "leave it out");
  if (!spec.elastic_role.empty())
    refuse("setting 'elastic-role' is not for EMR", "setting 'instance-profile' sets the rights of its nodes");
  if (spec.workers < 1) refuse("an EMR cluster has a worker at least", "give setting 'workers' 1 or more");
  if (spec.instance_types.size() > 1) refuse("EMR takes one type of machines in setting 'instance-type'", "give one");
  if (!spec.weights.empty()) refuse("setting 'instance-type' has no weights on EMR", "leave the ':N' out");
  if (!spec.kms_key.empty()) {
    refuse("setting 'kms-key' is not for EMR, which takes keys in a security configuration", "leave it out");
  }
  if (!spec.capacity_reservation.empty()) {
    refuse("setting 'capacity-reservation' is not for EMR", "leave it out; EMR uses open reservations by itself");
  }
  if (spec.head_only || spec.placement || spec.efa || spec.spot != SpotUse::off || !spec.prepare.empty() ||
      spec.time_to_live.count() > 0 || spec.autostop.count() > 0 || spec.min_workers) {
    refuse(
        "setting 'head-only', setting 'placement', setting 'efa', setting 'spot', setting 'prepare', setting 'ttl', "
        "setting 'autostop' and setting 'min-workers' are not for EMR",
        "leave them out");
  }
}

}  // namespace

std::vector<std::string> types_of(const Spec& spec) {
  std::vector<std::string> types;
  const auto add = [&](const std::string& type) {
    if (!type.empty() && std::ranges::find(types, type) == types.end()) types.push_back(type);
  };
  add(spec.head_type);
  for (const std::string& type : spec.instance_types) add(type);
  return types;
}

int least_workers(const Spec& spec) { return std::min(spec.min_workers.value_or(spec.workers), spec.workers); }

Shared shared_of(std::string_view text) {
  constexpr std::string_view kEfs = "efs:", kLustre = "fsx:";
  if (text == "none" || text.empty()) return {};
  if (text == "efs") return {SharedKind::new_efs};
  if (text == "fsx") return {SharedKind::new_lustre};
  if (text.starts_with(kEfs)) return {SharedKind::given_efs, std::string(text.substr(kEfs.size()))};
  if (!text.starts_with(kLustre)) return {SharedKind::path};
  const std::string_view rest = text.substr(kLustre.size());  // an id, or a size
  return rest.starts_with("fs-") ? Shared{SharedKind::given_lustre, std::string(rest)} : Shared{SharedKind::new_lustre};
}

Shared shared_of(const std::map<std::string, std::string>& options) {
  const auto found = options.find("shared");
  return found == options.end() ? Shared{} : shared_of(found->second);
}

int lustre_gb(const Spec& spec) {
  const auto colon = spec.shared.find(':');
  if (colon == spec.shared.npos) return kLeastLustre;
  return static_cast<int>(parse_integer(spec.shared.substr(colon + 1)).value_or(0));
}

void check_spec(const Spec& spec) {
  const auto refuse = [](const std::string& what, const std::string& hint) { throw UsageError(what, hint); };
  check_values(spec);
  if (spec.instance_types.empty())
    refuse("no setting 'instance-type' is given", "for example setting 'instance-type' c5.2xlarge");
  if (spec.min_workers && *spec.min_workers > spec.workers) {
    refuse(fmt::format("setting 'min-workers' {} is more than setting 'workers' {}", *spec.min_workers, spec.workers),
           "give fewer");
  }
  if (spec.workers == 0 && spec.head_only)
    refuse("a head only and no workers cannot train", "give setting 'workers' 1 or more");
  if (spec.max_price > 0 && spec.spot == SpotUse::off)
    refuse("setting 'max-price' is for spot instances", "give setting 'spot' prefer or only, or leave it out");
  if (!spec.capacity_reservation.empty() && spec.spot != SpotUse::off) {
    refuse("setting 'capacity-reservation' is for machines on demand", "give setting 'spot' off, or leave it out");
  }
  if (!spec.permissions_boundary.empty() && !wants_own_role(spec)) {
    refuse("setting 'permissions-boundary' is for the role that setting 'elastic-role' own makes",
           "give setting 'elastic-role' own too, or leave it out");
  }
  if (!spec.heal && spec.replace_head_after != kHeadPatience) {
    refuse("setting 'replace-head-after' is for a cluster that heals", "give setting 'heal' too, or leave it out");
  }
  if (spec.on == Service::emr) check_emr(spec);
}

}  // namespace dtrain::cluster
