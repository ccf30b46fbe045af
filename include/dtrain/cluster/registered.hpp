// Clusters of machines that are there already: hosts that answer ssh and share a folder, under a name. dtrain neither
// makes these machines nor ends them.
//
//   FOLDER/cluster.json      on the shared folder: the cluster as it is; changed under cluster.lock, by its head alone
//   FOLDER/hosts             its hosts, the head first, as -H takes them
//   FOLDER/events.jsonl      what was done to the cluster
//   FOLDER/key, ssh_config   with which the head logs in, where it has no key of its own
//   ~/.dtrain/clusters/NAME/registered.json    on a user's machine: the cluster as it was seen last
//   ~/.dtrain/clusters/NAME/head.json          on the head: where FOLDER is
//   ~/.dtrain/members/MACHINE                  on each host: which cluster it belongs to
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>
#include <dtrain/cluster/budget.hpp>
#include <dtrain/cluster/cost.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::cluster {

struct RegisteredHost {
  std::string name{};  // as the host file writes it, without slots=
  std::string user{}, host{};
  int port = 0, slots = 1;         // port 0: ssh's default
  std::optional<double> hourly{};  // US dollars; nullopt: unknown
  UnixTime since{0};               // from when on it costs
  net::SshTarget target() const { return {host, user, port}; }
  std::string line() const;  // of a host file
  friend bool operator==(const RegisteredHost&, const RegisteredHost&) = default;
};

struct RegisteredCluster {
  std::string name{};
  std::string shared{};                 // the folder that all hosts share, absolute
  std::string folder{};                 // below it: the files above, and the queue of jobs
  std::string machine{};                // of the head, as it calls itself; set by the head
  std::vector<RegisteredHost> hosts{};  // the head first; never empty
  std::optional<double> budget{};       // US dollars; nullopt: no limit
  double spent_by_others = 0;           // US dollars, by hosts that were removed
  std::vector<std::string> unpriced{};  // removed hosts whose price was unknown
  bool own_key = false;                 // the head logs in with FOLDER/key
  bool ends = false;                    // it is being taken down
  const RegisteredHost& head() const { return hosts.front(); }
  const RegisteredHost* find(std::string_view host) const;  // by name; nullptr: it has no such host
  Path host_file() const { return Path(folder) / "hosts"; }
  Path key() const { return Path(folder) / "key"; }
  Path ssh_config() const { return Path(folder) / "ssh_config"; }
  friend bool operator==(const RegisteredCluster&, const RegisteredCluster&) = default;
};
Json to_json(const RegisteredCluster& cluster);
// Throws DataError for another document, and for a schema of a newer dtrain.
RegisteredCluster registered_cluster_from(const Json& json, std::string_view source);

// The price of an hour, and what the hosts have cost since each was registered. A host without a price stands in
// `unpriced`. Pure.
Cost hourly_cost(const RegisteredCluster& cluster);
Spending spending_of(const RegisteredCluster& cluster, UnixTime now);

// A record is not there only where its folder says so: these functions throw Error where the folder cannot be read.

// On a user's machine, in the user's ~/.dtrain.
[[nodiscard]] std::optional<RegisteredCluster> registered(const std::string& name);  // nullopt: there is none
std::vector<RegisteredCluster> all_registered();                                     // by name
void remember(const RegisteredCluster& cluster);
void forget(const std::string& name);
// How that machine logs in: like ssh, with the user's keys and known hosts. The keys of new hosts are added to a file
// of the cluster.
net::SshOptions ssh_options_of_registered(const std::string& name);

// On the head. The cluster that this machine is the head of; nullopt: it is not. Throws DataError, and ForeignFile
// where another user may have written FOLDER/cluster.json.
[[nodiscard]] std::optional<RegisteredCluster> headed_here(const std::string& name);
// This machine becomes, or is no longer, the head.
void become_head(const RegisteredCluster& cluster);
void leave_headship(const std::string& name);
// FOLDER/cluster.json; nullopt: there is none.
[[nodiscard]] std::optional<RegisteredCluster> read_cluster(const Path& folder);
// Replaces FOLDER/cluster.json and FOLDER/hosts. The caller holds cluster.lock.
void write_cluster(const RegisteredCluster& cluster);

}  // namespace dtrain::cluster
