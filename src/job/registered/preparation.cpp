#include "preparation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/launcher/fan_out.hpp>

#include "cluster_lock.hpp"
#include "job/queue/job_queue.hpp"

namespace dtrain::job {
namespace {

using cluster::RegisteredCluster;
using cluster::RegisteredHost;
constexpr std::chrono::seconds kFolderPatience{20};
constexpr std::chrono::minutes kProbeLife{10};
constexpr std::size_t kProbeBytes = 8;
constexpr const char* kProbe = "probe-";
constexpr unsigned kOwnersAlone = 0600;

// Those that a command left behind. A younger one is in use.
void remove_probes(const Path& folder) {
  std::error_code ignored;
  const auto old = std::filesystem::file_time_type::clock::now() - kProbeLife;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    std::error_code gone;
    const bool is_probe = entry->path().filename().string().starts_with(kProbe);
    if (is_probe && std::filesystem::last_write_time(entry->path(), gone) < old && !gone)
      std::filesystem::remove(entry->path(), gone);
  }
}

bool has_probe(const Path& folder) {
  std::error_code ignored;
  std::filesystem::directory_iterator entry(folder, ignored);
  return std::any_of(std::filesystem::begin(entry), std::filesystem::end(entry),
                     [](const auto& one) { return one.path().filename().string().starts_with(kProbe); });
}

net::SshOptions own_ssh_options(const RegisteredCluster& cluster) {
  net::SshOptions options =
      net::user_ssh_options(environment("HOME").value_or("/"), environment("SSH_AUTH_SOCK").value_or(""));
  if (cluster.own_key) net::use_only(cluster.ssh_config(), options);
  options.known_hosts = Path(cluster.folder) / "known_hosts";
  options.new_host_keys = net::NewHostKeys::accept_unless_strict;
  return options;
}

}  // namespace

void forget_key(const Path& folder) {
  std::error_code ignored;
  for (const char* file : {"key", "key.pub", "ssh_config", "known_hosts"}) {
    std::filesystem::remove(folder / file, ignored);
  }
}

// A command that holds the lock, or has a probe there, may be about to use the key. Where that cannot be known, the key
// stays.
static void remove_unused_key(const Path& folder) try {
  if (!std::filesystem::is_directory(folder)) return;
  const auto lock = FileLock::take(folder / kClusterLock, "--shared");
  if (!lock || cluster::read_cluster(folder) || has_probe(folder)) return;
  forget_key(folder);
  std::error_code ignored;
  std::filesystem::remove(folder / kClusterLock, ignored);
} catch (const Error&) {  // no lock can be taken there, or the record of a cluster is damaged
}

FileLock lock_cluster(const Path& folder) {
  std::optional<FileLock> lock;
  const bool taken = wait_until(
      [&] {
        lock = FileLock::take(folder / kClusterLock, "--shared");
        return lock.has_value();
      },
      kFolderPatience);
  if (taken) return std::move(*lock);
  throw Error(fmt::format("{}: another command changes the cluster", folder.string()), "try again in a minute");
}

Json answer_place(const Json& question) {
  const std::string& chosen = question.at("shared").as_string();
  const Path shared = chosen.empty() ? Path(environment("HOME").value_or("/")) : Path(chosen);
  if (!shared.is_absolute() || !std::filesystem::is_directory(shared)) {
    throw UsageError(fmt::format("setting 'shared' {}: there is no such folder on the head", shared.string()),
                     "give the whole path of a folder that all hosts mount there");
  }
  const Path folder = queue_of_cluster(shared.string(), question.at("name").as_string());
  make_folder(folder);
  remove_probes(folder);
  const Path probe = folder / (kProbe + to_hex(unpredictable_bytes(kProbeBytes)));
  write_file_atomic(probe, host_name() + "\n");
  const auto there = cluster::read_cluster(folder);
  return Json::object({{"shared", shared.string()},
                       {"folder", folder.string()},
                       {"probe", probe.string()},
                       {"cluster", there && !there->ends ? cluster::to_json(*there) : Json()}});
}

Json answer_unplace(const Json& question) {
  const Path probe = question.at("probe").as_string(), folder = probe.parent_path();
  if (!probe.filename().string().starts_with(kProbe)) return Json::object();
  std::error_code ignored;
  std::filesystem::remove(probe, ignored);
  remove_unused_key(folder);
  std::filesystem::remove(folder, ignored);  // unless there is a cluster or a queue
  return Json::object();
}

// As a job's launcher will.
Json answer_reach(const RegisteredCluster& cluster) {
  std::vector<net::SshTarget> targets;
  for (const RegisteredHost& host : cluster.hosts) targets.push_back(host.target());
  Json failed = Json::array();
  launcher::fan_out(
      targets, {.ssh = own_ssh_options(cluster)}, [](std::size_t, net::SshSession&) {},
      [&](std::size_t host, const auto& failure, auto) {
        if (!failure) return;
        failed.push_back(Json::object({{"host", cluster.hosts[host].name}, {"why", failure->what}}));
      });
  return Json::object({{"failed", std::move(failed)}});
}

Json answer_key(const RegisteredCluster& cluster) {
  const FileLock lock = lock_cluster(cluster.folder);
  const Path key = cluster.key(), public_key = key.string() + ".pub";
  if (!is_listed(public_key)) {
    const ProgramAnswer made = ask_program({"/usr/bin/env", "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C",
                                            fmt::format("dtrain cluster {}", cluster.name), "-f", key.string()});
    if (made.code != 0) {
      throw Error(fmt::format("ssh-keygen on the head: {}", trim(made.errors)),
                  "give the head a key that opens all hosts, or install OpenSSH's client there");
    }
  }
  write_file_atomic(
      cluster.ssh_config(),
      fmt::format("IdentityFile \"{}\"\nInclude ~/.ssh/config\nInclude /etc/ssh/ssh_config\n", key.string()),
      kOwnersAlone);
  return Json::object({{"key", "restrict " + std::string(trim(read_file(public_key)))}});
}

}  // namespace dtrain::job
