// Values of a specification that are valid or not by themselves.
#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/spec.hpp>

namespace dtrain::cluster {
namespace {

constexpr double kLeastMaxPrice = 0.001;  // US dollars an hour: EC2 refuses this and less
constexpr std::size_t kLongestName = 40;
constexpr int kMostWorkers = 5'000;
constexpr std::size_t kLongestKey = 128, kLongestValue = 256, kMostTags = 10;
constexpr std::string_view kOwnKeys[] = {"Name", "NodeType", "elastic_worker_status"};
constexpr std::size_t kLongestAlias = 256, kDigitsOfAccount = 12;
constexpr std::size_t kPartsOfKeyId[] = {8, 4, 4, 4, 12}, kDigitsOfManyRegions = 32;

bool is_plain(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'; }

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

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

// Characters that the metadata of an instance allows in the key of a tag; a comma parts tags from each other.
bool is_key_character(char c) { return is_plain(c) || std::string_view("+=._:@").find(c) != std::string_view::npos; }

// Characters that EFS, FSx and IAM allow in the value of a tag, where letters may be of any language.
bool is_value_character(char c) {
  return is_plain(c) || static_cast<unsigned char>(c) >= 0x80 ||
         std::string_view(" _.:/=+@").find(c) != std::string_view::npos;
}

// "1234abcd-12ab-34cd-56ef-1234567890ab", or "mrk-..." of a key that is in several regions.
bool is_key_id(const std::string& text) {
  constexpr std::string_view kManyRegions = "mrk-";
  if (text.starts_with(kManyRegions)) {
    const std::string digits = text.substr(kManyRegions.size());
    return digits.size() == kDigitsOfManyRegions && is_hex(digits);
  }
  const std::vector<std::string> parts = split(text, '-');
  return std::ranges::equal(parts, kPartsOfKeyId, [](const std::string& part, std::size_t size) {
    return part.size() == size && is_hex(part);
  });
}

bool is_alias(const std::string& text) {
  constexpr std::string_view kLead = "alias/";
  const auto fits = [](char c) { return is_plain(c) || c == '/' || c == '_'; };
  return text.starts_with(kLead) && text.size() > kLead.size() && text.size() <= kLongestAlias &&
         std::ranges::all_of(text.substr(kLead.size()), fits);
}

// "key/..." or "alias/..." of an ARN, or the text itself; empty: an ARN that is not one of KMS.
std::string thing_of_key(const std::string& text) {
  if (!text.starts_with("arn:")) return text.starts_with("alias/") ? text : "key/" + text;
  const std::vector<std::string> parts = split(text, ':');
  const bool fits = parts.size() == 6 && parts[1].starts_with("aws") && parts[2] == "kms" && !parts[3].empty() &&
                    parts[4].size() == kDigitsOfAccount;
  return fits ? parts[5] : "";
}

// Sizes of FSx for Lustre above the least one, in GB.
constexpr int kLustreStep = 2'400, kMostLustre = 240'000;

void check_shared(const Spec& spec) {
  const Shared shared = shared_of(spec.shared);
  if (shared.kind == SharedKind::path && !spec.shared.starts_with('/')) {
    throw UsageError(
        fmt::format("setting 'shared' {} is neither none, efs, efs:ID, fsx, fsx:GB, fsx:ID nor a folder", spec.shared),
        "a folder begins with /");
  }
  if (shared.kind == SharedKind::given_efs && !shared.id.starts_with("fs-")) {
    throw UsageError(fmt::format("setting 'shared' {} names no file system", spec.shared),
                     "such as efs:fs-0123456789abcdef0");
  }
  if (shared.kind != SharedKind::new_lustre) return;
  const int size = lustre_gb(spec);
  if (size == kLeastLustre || (size > 0 && size <= kMostLustre && size % kLustreStep == 0)) return;
  throw UsageError(fmt::format("setting 'shared' {} names no size of FSx for Lustre, in GB", spec.shared),
                   fmt::format("{}, or a multiple of {} up to {}; fsx:fs-0123456789abcdef0 is one that is there",
                               kLeastLustre, kLustreStep, kMostLustre));
}

}  // namespace

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
  constexpr std::string_view kLead = "cr-";
  if (id.starts_with(kLead) && id.size() > kLead.size() && is_hex(std::string_view(id).substr(kLead.size()))) return;
  throw UsageError(fmt::format("setting 'capacity-reservation' '{}' is no id of a capacity reservation", id),
                   "such as cr-0123456789abcdef0");
}

void check_boundary(const std::string& arn) {
  if (is_iam_arn(arn, "policy/")) return;
  throw UsageError(fmt::format("setting 'permissions-boundary' '{}' is no ARN of a policy", arn),
                   "such as arn:aws:iam::123456789012:policy/boundary");
}

void check_kms_key(const std::string& key) {
  const std::string thing = thing_of_key(key);
  if (thing.starts_with("alias/aws/")) {
    throw UsageError(fmt::format("setting 'kms-key' '{}' is a key that AWS keeps for one service", key),
                     "leave it out: AWS encrypts by its own keys without it; or give a key of yours");
  }
  if (is_alias(thing) || (thing.starts_with("key/") && is_key_id(thing.substr(4)))) return;
  throw UsageError(fmt::format("setting 'kms-key' '{}' is neither an ARN, an alias nor an id of a KMS key", key),
                   "such as alias/training, 1234abcd-12ab-34cd-56ef-1234567890ab or "
                   "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab");
}

std::string region_of_kms_key(const std::string& key) {
  const std::vector<std::string> parts = split(key, ':');
  return key.starts_with("arn:") && parts.size() > 3 ? parts[3] : "";
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

std::string tag_value(std::string_view text) {
  const auto goes_on = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; };
  std::size_t size = std::min(text.size(), kLongestValue);
  while (size > 0 && size < text.size() && goes_on(text[size])) --size;
  std::string value(text.substr(0, size));
  std::ranges::replace_if(
      value, [](char c) { return !is_value_character(c); }, '_');
  return value;
}

void check_tags_of_services(const Spec& spec) {
  const SharedKind shared = shared_kind(spec);
  const char* const service = shared == SharedKind::new_efs      ? "EFS"
                              : shared == SharedKind::new_lustre ? "FSx"
                              : wants_own_role(spec)             ? "IAM"
                                                                 : nullptr;
  if (!service) return;
  for (const auto& [key, value] : spec.tags) {
    if (std::ranges::all_of(value, is_value_character)) continue;
    throw UsageError(fmt::format("'{}={}' is no tag for {}, which the cluster uses too", key, value, service),
                     "a value for all services has letters, digits, blanks and _ . : / = + - @");
  }
}

void check_values(const Spec& spec) {
  const auto refuse = [](const std::string& what, const std::string& hint) { throw UsageError(what, hint); };
  if (spec.workers > kMostWorkers)
    refuse(fmt::format("setting 'workers' {} is more than {}", spec.workers, kMostWorkers), "");
  if (spec.ssh_from != "me" && !is_cidr(spec.ssh_from)) {
    refuse(fmt::format("setting 'ssh-from' {} is no block of addresses", spec.ssh_from),
           "such as 203.0.113.7/32, or me");
  }
  if (spec.max_price > 0 && spec.max_price <= kLeastMaxPrice) {
    refuse(fmt::format("setting 'max-price' {} is no price for EC2, which takes those above {}", spec.max_price,
                       kLeastMaxPrice),
           "give US dollars an hour, or 0 for the price on demand");
  }
  if (!spec.capacity_reservation.empty()) check_reservation_id(spec.capacity_reservation);
  if (!spec.permissions_boundary.empty()) check_boundary(spec.permissions_boundary);
  if (!spec.kms_key.empty()) check_kms_key(spec.kms_key);
  if (spec.replace_head_after.count() > 0 && spec.replace_head_after < kLeastHeadPatience) {
    refuse(fmt::format("setting 'replace-head-after' is shorter than {}, in which AWS may still show a head that ended",
                       format_duration(kLeastHeadPatience)),
           fmt::format("give {}m or more, or off", kLeastHeadPatience.count()));
  }
  check_shared(spec);
  for (const auto& [key, value] : spec.tags) check_tag(key, value);
  if (spec.tags.size() > kMostTags) {
    refuse(fmt::format("setting 'tag' names {} tags, and a resource can have {}", spec.tags.size(), kMostTags),
           "AWS allows 50 of each resource, of which dtrain uses the others");
  }
  if (!spec.mount.starts_with('/'))
    refuse(fmt::format("setting 'mount' {} is no folder", spec.mount), "it begins with /");
}

}  // namespace dtrain::cluster
