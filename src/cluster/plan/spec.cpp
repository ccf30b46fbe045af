#include <dtrain/cluster/spec.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::cluster {
namespace {

constexpr double kLeastMaxPrice = 0.001;  // US dollars an hour: EC2 refuses this and less
constexpr std::size_t kLongestName = 40;
constexpr int kMostWorkers = 5'000;
constexpr int kLeastRelease = 7;
constexpr int kLeastRootGb = 50;
constexpr std::size_t kLongestKey = 128, kLongestValue = 256, kMostTags = 10;
constexpr std::string_view kOwnKeys[] = {"Name", "NodeType", "elastic_worker_status"};

bool is_plain(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'; }

bool is_cidr(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == text.npos) return false;
  const auto bits = parse_integer(text.substr(slash + 1));
  const bool six = text.find(':') != text.npos;
  if (!bits || *bits < 0 || *bits > (six ? 128 : 32)) return false;
  const std::string address = text.substr(0, slash);
  if (six)
    return std::ranges::all_of(
        address, [](char c) { return std::string_view("0123456789abcdefABCDEF:.").find(c) != std::string_view::npos; });
  const auto parts = split(address, '.');
  return parts.size() == 4 && std::ranges::all_of(parts, [](const std::string& part) {
           const auto number = parse_integer(part);
           return number && *number >= 0 && *number <= 255;
         });
}

int release_number(const std::string& release) {
  if (!release.starts_with("emr-")) return 0;
  return static_cast<int>(parse_integer(split(release.substr(4), '.').front()).value_or(0));
}

// Characters that the metadata of an instance allows in the key of a tag; a comma parts tags from each other.
bool is_key_character(char c) { return is_plain(c) || std::string_view("+=._:@").find(c) != std::string_view::npos; }

// Refuses what EMR does not support.
void check_emr(const Spec& spec) {
  const auto refuse = [](const std::string& what, const std::string& hint) { throw UsageError(what, hint); };
  if (release_number(spec.release) < kLeastRelease) {
    refuse(fmt::format("setting 'release' '{}' is not EMR {} or later", spec.release, kLeastRelease),
           "such as setting 'release' emr-7.1.0");
  }
  if (spec.root_gb < kLeastRootGb) {
    refuse(fmt::format("setting 'root-gb' {} is too small for EMR", spec.root_gb),
           fmt::format("{} or more", kLeastRootGb));
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
  if (!spec.elastic_role.empty())
    refuse("setting 'elastic-role' is not for EMR", "setting 'instance-profile' sets the rights of its nodes");
  if (spec.workers < 1) refuse("an EMR cluster has a worker at least", "give setting 'workers' 1 or more");
  if (spec.instance_types.size() > 1) refuse("EMR takes one type of machines in setting 'instance-type'", "give one");
  if (!spec.weights.empty()) refuse("setting 'instance-type' has no weights on EMR", "leave the ':N' out");
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

SharedKind shared_kind(const Spec& spec) {
  if (spec.shared == "none" || spec.shared.empty()) return SharedKind::none;
  if (spec.shared == "efs") return SharedKind::new_efs;
  return spec.shared.starts_with("efs:") ? SharedKind::given_efs : SharedKind::path;
}

void check_cluster_name(const std::string& name) {
  if (!name.empty() && name.size() <= kLongestName && std::ranges::all_of(name, is_plain) && name.front() != '-')
    return;
  throw UsageError(fmt::format("'{}' is no name for a cluster", name),
                   fmt::format("letters, digits and -, at most {}", kLongestName));
}

bool is_iam_arn(const std::string& text, std::string_view kind) {
  const std::vector<std::string> parts = split(text, ':');
  return parts.size() == 6 && parts[0] == "arn" && parts[1].starts_with("aws") && parts[2] == "iam" &&
         parts[3].empty() && parts[5].starts_with(kind) && parts[5].size() > kind.size();
}

void check_reservation_id(const std::string& id) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  constexpr std::string_view kLead = "cr-";
  if (id.starts_with(kLead) && id.size() > kLead.size() && std::ranges::all_of(id.substr(kLead.size()), is_digit))
    return;
  throw UsageError(fmt::format("setting 'capacity-reservation' '{}' is no id of a capacity reservation", id),
                   "such as cr-0123456789abcdef0");
}

void check_boundary(const std::string& arn) {
  if (is_iam_arn(arn, "policy/")) return;
  throw UsageError(fmt::format("setting 'permissions-boundary' '{}' is no ARN of a policy", arn),
                   "such as arn:aws:iam::123456789012:policy/boundary");
}

void check_tag(const std::string& key, const std::string& value) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw UsageError(fmt::format("'{}={}' is no tag: {}", key, value, why), hint);
  };
  if (key.empty() || key.size() > kLongestKey || !std::ranges::all_of(key, is_key_character)) {
    refuse("its key is not one that every AWS service and the metadata of instances take",
           fmt::format("letters, digits and + - = . _ : @, at most {} of them", kLongestKey));
  }
  if (value.size() > kLongestValue) refuse(fmt::format("its value is longer than {} bytes", kLongestValue), "");
  const bool is_own =
      key.starts_with("aws:") || key.starts_with("dtrain:") || std::ranges::find(kOwnKeys, key) != std::end(kOwnKeys);
  if (is_own) refuse("AWS or dtrain uses this key", "choose another key, such as project");
}

void check_spec(const Spec& spec) {
  const auto refuse = [](const std::string& what, const std::string& hint) { throw UsageError(what, hint); };
  if (spec.instance_types.empty())
    refuse("no setting 'instance-type' is given", "for example setting 'instance-type' c5.2xlarge");
  if (spec.workers > kMostWorkers)
    refuse(fmt::format("setting 'workers' {} is more than {}", spec.workers, kMostWorkers), "");
  if (spec.min_workers && *spec.min_workers > spec.workers) {
    refuse(fmt::format("setting 'min-workers' {} is more than setting 'workers' {}", *spec.min_workers, spec.workers),
           "give fewer");
  }
  if (spec.workers == 0 && spec.head_only)
    refuse("a head only and no workers cannot train", "give setting 'workers' 1 or more");
  if (spec.ssh_from != "me" && !is_cidr(spec.ssh_from)) {
    refuse(fmt::format("setting 'ssh-from' {} is no block of addresses", spec.ssh_from),
           "such as 203.0.113.7/32, or me");
  }
  if (spec.max_price > 0 && spec.spot == SpotUse::off)
    refuse("setting 'max-price' is for spot instances", "give setting 'spot' prefer or only, or leave it out");
  if (spec.max_price > 0 && spec.max_price <= kLeastMaxPrice) {
    refuse(fmt::format("setting 'max-price' {} is no price for EC2, which takes those above {}", spec.max_price,
                       kLeastMaxPrice),
           "give US dollars an hour, or 0 for the price on demand");
  }
  if (!spec.capacity_reservation.empty()) {
    check_reservation_id(spec.capacity_reservation);
    if (spec.spot != SpotUse::off) {
      refuse("setting 'capacity-reservation' is for machines on demand", "give setting 'spot' off, or leave it out");
    }
  }
  if (!spec.permissions_boundary.empty()) {
    if (!wants_own_role(spec)) {
      refuse("setting 'permissions-boundary' is for the role that setting 'elastic-role' own makes",
             "give setting 'elastic-role' own too, or leave it out");
    }
    check_boundary(spec.permissions_boundary);
  }
  const SharedKind shared = shared_kind(spec);
  if (shared == SharedKind::path && !spec.shared.starts_with('/')) {
    refuse(fmt::format("setting 'shared' {} is neither none, efs, efs:ID nor a folder", spec.shared),
           "a folder begins with /");
  }
  if (shared == SharedKind::given_efs && !spec.shared.starts_with("efs:fs-")) {
    refuse(fmt::format("setting 'shared' {} names no file system", spec.shared), "such as efs:fs-0123456789abcdef0");
  }
  for (const auto& [key, value] : spec.tags) check_tag(key, value);
  if (spec.tags.size() > kMostTags) {
    refuse(fmt::format("setting 'tag' names {} tags, and a resource can have {}", spec.tags.size(), kMostTags),
           "AWS allows 50 of each resource, of which dtrain uses the others");
  }
  if (spec.on == Service::emr) check_emr(spec);
  if (!spec.mount.starts_with('/'))
    refuse(fmt::format("setting 'mount' {} is no folder", spec.mount), "it begins with /");
}

}  // namespace dtrain::cluster
