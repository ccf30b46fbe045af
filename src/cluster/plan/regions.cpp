#include <dtrain/cluster/regions.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/own_folders.hpp>
#include <dtrain/cluster/wish.hpp>

namespace dtrain::cluster {
namespace {

constexpr const char* kSchema = "dtrain.cluster-regions/1";
constexpr const char* kRegionsFile = "regions.json";
constexpr const char* kAccounts = "accounts";
constexpr double kMostBytesOfNothing = 1 << 20;

bool is_region(const std::string& name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

// "us-east-1" of "us-east-1a" and "us-west-2" of "us-west-2-lax-1a"; empty: it is no zone.
std::string region_of_zone(const std::string& name) {
  constexpr const char* kDigits = "0123456789";
  const std::size_t end = name.find_first_not_of(kDigits, name.find_first_of(kDigits));
  if (end == name.npos || name.find_last_of(kDigits) + 2 != name.size()) return {};
  return name.substr(0, end);
}

struct RememberedRegion {
  std::string name, account;  // the account is empty where it is not known, or one of several
};

// A damaged file is as good as none: the user names the regions again.
std::vector<RememberedRegion> read_regions(const Path& file) try {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) return {};
  const Json json = Json::parse(read_file(file), file.string());
  std::vector<RememberedRegion> regions;
  if (json.at("schema").as_string() != kSchema) return {};
  const Json* const accounts = json.find(kAccounts);  // files of earlier versions have none
  for (const Json& one : json.at("regions").as_array()) {
    const std::string& name = one.as_string();
    if (is_region(name)) regions.push_back({name, accounts ? accounts->find_text(name) : std::string()});
  }
  return regions;
} catch (const Error&) {
  return {};
}

std::vector<RememberedRegion> read_regions_of(const std::string& cluster) {
  return read_regions(clusters_of_user() / cluster / kRegionsFile);
}

// What is remembered of a region may be of another account than that of `up`, which then says nothing of it.
std::string account_of_both(const std::string& before, const std::string& account) {
  return account.empty() || account == before ? before : std::string();
}

}  // namespace

std::vector<std::string> regions_in(const std::string& text) {
  std::vector<std::string> regions;
  if (text.empty()) return regions;
  for (const std::string& part : split(text, ',')) {
    std::string name(trim(part));
    if (!is_region(name)) {
      throw UsageError(fmt::format("setting 'region' '{}' names no region in '{}'", text, name),
                       "such as eu-west-1, or eu-west-1,us-east-1 for one after the other");
    }
    if (const std::string region = region_of_zone(name); !region.empty()) {
      throw UsageError(fmt::format("setting 'region' '{}' names the availability zone {}", text, name),
                       fmt::format("its region is {}; setting 'subnet' chooses a zone", region));
    }
    if (std::ranges::find(regions, name) != regions.end())
      throw UsageError(fmt::format("setting 'region' '{}' names {} twice", text, name), "name each region once");
    regions.push_back(std::move(name));
  }
  return regions;
}

void refuse_ties(const Spec& spec) {
  const auto refuse = [](const std::string& what) {
    throw UsageError(what + " belongs to one region, and setting 'region' names several",
                     "give setting 'region' with that one, or leave the other option out");
  };
  const auto with = [](const char* name, const std::string& text) {
    return fmt::format("setting '{}' {}", name, text);
  };
  if (spec.on == Service::emr) refuse(with("on", "emr"));
  const SharedKind shared = shared_kind(spec);
  if (shared == SharedKind::given_efs || shared == SharedKind::given_lustre) refuse(with("shared", spec.shared));
  if (spec.image.starts_with("ami-")) refuse(with("image", spec.image));
  if (!spec.vpc.empty()) refuse(with("vpc", spec.vpc));
  if (!spec.subnet.empty()) refuse(with("subnet", spec.subnet));
  if (!spec.capacity_reservation.empty()) refuse(with("capacity-reservation", spec.capacity_reservation));
  if (!region_of_kms_key(spec.kms_key).empty()) refuse(with("kms-key", spec.kms_key));
}

void refuse_kept_storage(const Account& account, const Spec& spec, const Fleet& fleet) {
  const SharedKind shared = shared_kind(spec);
  if (shared != SharedKind::new_efs && shared != SharedKind::new_lustre) return;
  if (!account.file_system || is_empty(*account.file_system, fleet)) return;
  throw UsageError(
      fmt::format("file system {} of cluster {} is kept in {}, and the cluster would miss it in another region",
                  account.file_system->id, fleet.name, account.region),
      fmt::format("give setting 'region' {} alone; or copy what you need, and delete it: dtrain cluster down {} "
                  "setting 'region' {} setting 'delete-storage'",
                  account.region, fleet.name, account.region));
}

bool is_only_begun(const Fleet& fleet) {
  return fleet.group && !fleet.on_emr() && std::ranges::none_of(fleet.nodes, is_adopted) &&
         !fleet.group->tags.contains(tag::kWish) && !fleet.group->tags.contains(tag::kLaunches);
}

bool is_empty(const FileSystem& system, const Fleet& fleet) {
  if (!system.own || !is_only_begun(fleet) || system.group != fleet.group->id) return false;
  return system.lustre || system.bytes < kMostBytesOfNothing;
}

bool is_of_others(const Fleet& now, const Fleet& own, const std::set<std::string>& ended, bool has_written) {
  if (!has_written && now.group && now.group->tags.contains(tag::kWish)) return true;
  return std::ranges::any_of(now.nodes, [&](const Node& one) {
    return one.alive() && !own.find(one.instance_id) && !ended.contains(one.instance_id);
  });
}

std::string region_with(const std::vector<std::string>& regions, const std::function<Fleet(const std::string&)>& read) {
  std::string begun;
  for (const std::string& region : regions) {
    const Fleet fleet = read(region);
    if (!fleet.exists()) continue;
    if (!is_only_begun(fleet)) return region;
    if (begun.empty()) begun = region;
  }
  return begun;
}

bool refuses_user(const net::AwsError& problem) {
  const net::AwsProblem kind = problem.facts().problem;
  return kind == net::AwsProblem::denied || kind == net::AwsProblem::credentials;
}

std::string answering_region_with(const std::vector<std::string>& regions, const std::vector<std::string>& remembered,
                                  const std::function<Fleet(const std::string&)>& read,
                                  const std::function<void(const std::string&)>& note) {
  std::string refusal;
  std::string found = region_with(regions, [&](const std::string& region) {
    try {
      return read(region);
    } catch (const net::AwsError& problem) {
      if (!refuses_user(problem) || regions.size() == 1) throw;
      const std::string text = fmt::format("{} cannot be asked: {}", region, problem.what());
      if (std::ranges::find(remembered, region) != remembered.end() && refusal.empty()) refusal = text;
      note(text);
      return Fleet{};
    }
  });
  if (found.empty() && !refusal.empty()) {
    throw RemoteError(refusal, "give setting 'region' with the one that you mean, if the cluster is elsewhere");
  }
  return found;
}

std::vector<std::string> remembered_regions(const std::string& cluster) {
  std::vector<std::string> names;
  for (const RememberedRegion& one : read_regions_of(cluster)) names.push_back(one.name);
  return names;
}

std::string remembered_account(const std::string& cluster, const std::string& region) {
  const std::vector<RememberedRegion> all = read_regions_of(cluster);
  const auto found = std::ranges::find(all, region, &RememberedRegion::name);
  return found == all.end() ? std::string() : found->account;
}

void remember_regions(const std::string& cluster, const std::vector<std::string>& regions, const std::string& account) {
  if (regions.empty()) {
    const Path folder = clusters_of_user() / cluster;
    std::error_code ignored;
    std::filesystem::remove(folder / kRegionsFile, ignored);
    std::filesystem::remove(folder, ignored);  // unless something else is in it
    return;
  }
  const std::vector<RememberedRegion> before = read_regions_of(cluster);
  Json accounts = Json::object();
  for (const std::string& region : regions) {
    const auto known = std::ranges::find(before, region, &RememberedRegion::name);
    const std::string number = known == before.end() ? account : account_of_both(known->account, account);
    if (!number.empty()) accounts[region] = number;
  }
  write_file_atomic(
      make_folder_of_cluster(cluster) / kRegionsFile,
      Json::object({{"schema", kSchema}, {"regions", json_texts(regions)}, {kAccounts, accounts}}).dump() + "\n",
      kOwnerOnly);
}

std::vector<std::string> regions_to_ask(const std::string& cluster, const net::AwsSettings& settings) {
  std::vector<std::string> regions = remembered_regions(cluster);
  if (regions.empty()) return regions;
  try {
    const std::string usual = net::aws_region(settings);
    std::erase(regions, usual);
    regions.insert(regions.begin(), usual);
  } catch (const UsageError&) {
    // the user has no usual one
  }
  return regions;
}

std::vector<std::string> all_remembered_regions() {
  std::set<std::string> all;
  std::error_code none;
  for (std::filesystem::directory_iterator entry(clusters_of_user(), none), end; !none && entry != end;
       entry.increment(none)) {
    for (const RememberedRegion& one : read_regions(entry->path() / kRegionsFile)) all.insert(one.name);
  }
  return {all.begin(), all.end()};
}

}  // namespace dtrain::cluster
