#include <dtrain/base/files.hpp>
#include <dtrain/cluster/registered.hpp>

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/own_files.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/own_folders.hpp>

namespace dtrain::cluster {
namespace {

constexpr std::string_view kSchema = "dtrain.registered-cluster/";
constexpr int kNewestSchema = 1;
constexpr const char* kRegistered = "registered.json";
constexpr const char* kHeadFile = "head.json";
constexpr const char* kClusterFile = "cluster.json";
constexpr double kSecondsOfAnHour = 3600;
constexpr std::chrono::seconds kToConnect{8};

Path folder_of_user(const std::string& name) { return clusters_of_user() / name; }

Json price_json(const std::optional<double>& dollars) { return dollars ? Json(*dollars) : Json(); }
std::optional<double> price_from(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.as_number());
}

Json host_json(const RegisteredHost& host) {
  return Json::object({{"name", host.name},
                       {"user", host.user},
                       {"host", host.host},
                       {"port", host.port},
                       {"slots", host.slots},
                       {"dollars_per_hour", price_json(host.hourly)},
                       {"since", std::int64_t{host.since.count()}}});
}

RegisteredHost host_from(const Json& json) {
  return {.name = json.at("name").as_string(),
          .user = json.at("user").as_string(),
          .host = json.at("host").as_string(),
          .port = static_cast<int>(json.at("port").as_integer()),
          .slots = static_cast<int>(json.at("slots").as_integer()),
          .hourly = price_from(json.at("dollars_per_hour")),
          .since = UnixTime(json.at("since").as_integer())};
}

void check_schema(const Json& json, std::string_view source) {
  const std::string& said = json.at("schema").as_string();
  const auto number = said.starts_with(kSchema) ? parse_integer(said.substr(kSchema.size())) : std::nullopt;
  if (!number) throw DataError(fmt::format("{}: its schema '{}' is not {}N", source, said, kSchema));
  if (*number > kNewestSchema) {
    throw DataError(fmt::format("{}: its schema {} is of a newer dtrain", source, said),
                    "run the dtrain that wrote it, or a newer one");
  }
}

std::optional<RegisteredCluster> read_document(const Path& file, std::string (*read)(const Path&) = read_file) {
  if (!is_listed_or_throw(file)) return std::nullopt;
  return registered_cluster_from(Json::parse(read(file), file.string()), file.string());
}

}  // namespace

std::string RegisteredHost::line() const { return slots == 1 ? name : fmt::format("{} slots={}", name, slots); }

const RegisteredHost* RegisteredCluster::find(std::string_view host) const {
  const auto found = std::ranges::find(hosts, host, &RegisteredHost::name);
  return found == hosts.end() ? nullptr : &*found;
}

Json to_json(const RegisteredCluster& cluster) {
  Json hosts = Json::array();
  for (const RegisteredHost& host : cluster.hosts) hosts.push_back(host_json(host));
  return Json::object({{"schema", fmt::format("{}{}", kSchema, kNewestSchema)},
                       {"name", cluster.name},
                       {"shared", cluster.shared},
                       {"folder", cluster.folder},
                       {"machine", cluster.machine},
                       {"hosts", std::move(hosts)},
                       {"budget", price_json(cluster.budget)},
                       {"spent_by_others", cluster.spent_by_others},
                       {"unpriced", json_texts(cluster.unpriced)},
                       {"own_key", cluster.own_key},
                       {"ends", cluster.ends}});
}

RegisteredCluster registered_cluster_from(const Json& json, std::string_view source) {
  check_schema(json, source);
  RegisteredCluster cluster{.name = json.at("name").as_string(),
                            .shared = json.at("shared").as_string(),
                            .folder = json.at("folder").as_string(),
                            .machine = json.at("machine").as_string(),
                            .budget = price_from(json.at("budget")),
                            .spent_by_others = json.at("spent_by_others").as_number(),
                            .own_key = json.at("own_key").as_bool(),
                            .ends = json.at("ends").as_bool()};
  for (const Json& host : json.at("hosts").as_array()) cluster.hosts.push_back(host_from(host));
  for (const Json& one : json.at("unpriced").as_array()) cluster.unpriced.push_back(one.as_string());
  if (cluster.hosts.empty()) throw DataError(fmt::format("{}: it has no host", source));
  return cluster;
}

Cost hourly_cost(const RegisteredCluster& cluster) {
  Cost cost;
  for (const RegisteredHost& host : cluster.hosts) {
    cost.hourly += host.hourly.value_or(0);
    if (!host.hourly) cost.unpriced.push_back(host.name);
  }
  return cost;
}

Spending spending_of(const RegisteredCluster& cluster, UnixTime now) {
  Spending spending{.dollars = cluster.spent_by_others, .at = now, .unpriced = cluster.unpriced};
  for (const RegisteredHost& host : cluster.hosts) {
    const double hours = static_cast<double>(std::max((now - host.since).count(), std::int64_t{0})) / kSecondsOfAnHour;
    spending.dollars += host.hourly.value_or(0) * hours;
    if (!host.hourly) spending.unpriced.push_back(host.name);
  }
  return spending;
}

std::optional<RegisteredCluster> registered(const std::string& name) {
  return read_document(folder_of_user(name) / kRegistered);
}

std::vector<RegisteredCluster> all_registered() {
  std::vector<RegisteredCluster> all;
  std::error_code none;
  for (std::filesystem::directory_iterator entry(clusters_of_user(), none), end; !none && entry != end;
       entry.increment(none)) {
    if (auto one = read_document(entry->path() / kRegistered)) all.push_back(std::move(*one));
  }
  std::ranges::sort(all, {}, &RegisteredCluster::name);
  return all;
}

void remember(const RegisteredCluster& cluster) {
  write_file_atomic(make_folder_of_cluster(cluster.name) / kRegistered, to_json(cluster).dump() + "\n", kOwnerOnly);
}

void forget(const std::string& name) {
  std::error_code ignored;
  for (const char* file : {kRegistered, "known_hosts"}) std::filesystem::remove(folder_of_user(name) / file, ignored);
  std::filesystem::remove(folder_of_user(name), ignored);  // unless something else is in it
}

net::SshOptions ssh_options_of_registered(const std::string& name) {
  net::SshOptions options =
      net::user_ssh_options(environment("HOME").value_or("/"), environment("SSH_AUTH_SOCK").value_or(""));
  options.known_hosts = make_folder_of_cluster(name) / "known_hosts";
  options.new_host_keys = net::NewHostKeys::accept_unless_strict;
  options.connect_deadline = kToConnect;
  return options;
}

std::optional<RegisteredCluster> headed_here(const std::string& name) {
  const Path file = folder_of_user(name) / kHeadFile;
  if (!is_listed_or_throw(file)) return std::nullopt;
  const Json json = Json::parse(read_file(file), file.string());
  // Its hosts get the programs and tokens of the jobs.
  auto cluster = read_document(Path(json.at("folder").as_string()) / kClusterFile, read_own_file);
  // Home folders may be shared too, and a head that was lost may have been replaced.
  if (cluster && cluster->machine != host_name()) cluster.reset();
  return cluster;
}

void become_head(const RegisteredCluster& cluster) {
  const Json json = Json::object({{"schema", "dtrain.cluster-head/1"}, {"folder", cluster.folder}});
  write_file_atomic(make_folder_of_cluster(cluster.name) / kHeadFile, json.dump() + "\n", kOwnerOnly);
}

void leave_headship(const std::string& name) {
  std::error_code ignored;
  std::filesystem::remove(folder_of_user(name) / kHeadFile, ignored);
  std::filesystem::remove(folder_of_user(name), ignored);
}

std::optional<RegisteredCluster> read_cluster(const Path& folder) { return read_document(folder / kClusterFile); }

void write_cluster(const RegisteredCluster& cluster) {
  std::string lines =
      fmt::format("# The hosts of cluster {}. Change them by `dtrain cluster add` and `remove`.\n", cluster.name);
  for (const RegisteredHost& host : cluster.hosts) lines += host.line() + "\n";
  write_file_atomic(cluster.host_file(), lines, kReadableFile);
  write_file_atomic(Path(cluster.folder) / kClusterFile, to_json(cluster).dump() + "\n", kOwnerOnly);
}

}  // namespace dtrain::cluster
