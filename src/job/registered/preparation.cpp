#include "preparation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <exception>

#include <dtrain/base/ask_program.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/own_files.hpp>
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

// Throws std::filesystem::filesystem_error where the folder cannot be read.
bool has_probe(const Path& folder) {
  const std::filesystem::directory_iterator entry(folder);
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

// Returns what it prints.
std::string ask_keygen(const std::vector<std::string>& words) {
  std::vector<std::string> command = {"/usr/bin/env", "ssh-keygen"};
  command.insert(command.end(), words.begin(), words.end());
  const ProgramAnswer answer = ask_program(command);
  if (answer.code == 0) return answer.output;
  throw Error(fmt::format("ssh-keygen on the head: {}", trim(answer.errors)),
              "give the head a key that opens all hosts, or install OpenSSH's client there");
}

}  // namespace

void require_own_folder(const Path& folder) {
  if (!std::filesystem::exists(std::filesystem::symlink_status(folder)) || is_own_folder(folder)) return;
  const std::string owner = owner_of(folder), own = user_name(::geteuid());
  if (owner != own) {
    throw UsageError(
        fmt::format("{}: it belongs to {}, and not to {}, who logs in to the head", folder.string(), owner, own),
        "choose another name for the cluster, or another shared folder");
  }
  throw UsageError(fmt::format("{}: other users may write there, or it is a symbolic link", folder.string()),
                   fmt::format("look at what is in it, then chmod go-w {}", folder.string()));
}

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
  const auto lock = FileLock::take(folder / kClusterLock, "--shared", kReadableFile);
  if (!lock || cluster::read_cluster(folder) || has_probe(folder)) return;
  forget_key(folder);
  std::error_code ignored;
  std::filesystem::remove(folder / kClusterLock, ignored);
} catch (const std::exception&) {  // no lock can be taken there, or the record of a cluster cannot be read
}

FileLock lock_cluster(const Path& folder) {
  std::optional<FileLock> lock;
  const bool taken = wait_until(
      [&] {
        lock = FileLock::take(folder / kClusterLock, "--shared", kReadableFile);
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
  make_queue_folder(folder);
  require_own_folder(folder);
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
  require_own_folder(cluster.folder);
  const FileLock lock = lock_cluster(cluster.folder);
  const Path key = cluster.key();
  const std::string comment = fmt::format("dtrain cluster {}", cluster.name);
  if (!is_listed_or_throw(key)) ask_keygen({"-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", key.string()});
  read_own_file(key);
  // Not from key.pub, which names any key that its writer likes.
  const std::vector<std::string> words = split(trim(ask_keygen({"-y", "-P", "", "-f", key.string()})), ' ');
  if (words.size() < 2) throw Error(fmt::format("{}: ssh-keygen shows no public key of it", key.string()));
  write_file_atomic(
      cluster.ssh_config(),
      fmt::format("IdentityFile \"{}\"\nInclude ~/.ssh/config\nInclude /etc/ssh/ssh_config\n", key.string()),
      kOwnersAlone);
  return Json::object({{"key", fmt::format("restrict {} {} {}", words[0], words[1], comment)}});
}

}  // namespace dtrain::job
