#include "ssh_access.hpp"

#include <fmt/format.h>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/cluster/provider.hpp>

#include "config/job_options.hpp"
#include "host_list.hpp"

namespace dtrain::job {

void bind(config::OptionSet& set, SshAccess& access) {
  set.group("Hosts");
  config::bind_hostfile(set, access.hostfile);
  set.add("--cluster", access.cluster, "NAME", "use all nodes of this cluster, instead of -H").flag_only = true;
  set.add("-j,--parallel", access.parallel, "N", "number of hosts to work on at the same time",
          config::between(1, 1024));
  config::add_seconds(set, "--connect-timeout", access.connect_timeout,
                      "time limit for logging in to a host, in seconds; a busy ssh server is retried until then",
                      config::more_than(0));
  config::bind_ssh_config(set, access.config);
  set.add("-i,--identity", access.identity, "private key to try before the user's own keys").not_from_project = true;
  set.add("--known-hosts", access.known_hosts, "file of host keys (default ~/.ssh/known_hosts)").not_from_project =
      true;
  set.add("--accept-new-hosts", access.accept_new_hosts,
          "accept the key of a host that is not yet in --known-hosts, and add it")
      .not_from_project = true;
}

namespace {

ChosenHosts nodes_of(const std::string& cluster) {
  ChosenHosts hosts;
  for (const cluster::Provider::Member& member : cluster::provider_of(cluster)->members()) {
    hosts.names.push_back(member.name);
    hosts.targets.push_back(member.target);
  }
  return hosts;
}

}  // namespace

ChosenHosts read_hosts(const SshAccess& access) {
  if (!access.cluster.empty()) return nodes_of(access.cluster);
  if (!access.hostfile) throw UsageError("the hosts are missing", "add -H FILE, a file with one host per line");
  ChosenHosts hosts;
  for (const elastic::HostLine& line : read_host_file(*access.hostfile).hosts) {
    hosts.names.push_back(line.name);
    hosts.targets.push_back({line.host, line.user, line.port});
  }
  return hosts;
}

launcher::FanOutOptions fan_out_options(const SshAccess& access, std::stop_token stop) {
  launcher::FanOutOptions options;
  options.ssh = net::user_ssh_options(environment("HOME").value_or("/"), environment("SSH_AUTH_SOCK").value_or(""));
  if (!access.cluster.empty()) options.ssh = cluster::ssh_options_of(access.cluster);
  if (access.config) net::use_only(*access.config, options.ssh);
  if (access.identity) options.ssh.identities.insert(options.ssh.identities.begin(), *access.identity);
  if (access.known_hosts) {
    options.ssh.known_hosts = *access.known_hosts;
    options.ssh.user_known_hosts.clear();
  }
  if (access.accept_new_hosts) options.ssh.new_host_keys = net::NewHostKeys::accept;
  options.ssh.connect_deadline = std::chrono::duration_cast<std::chrono::milliseconds>(access.connect_timeout);
  options.ssh.stop = std::move(stop);
  options.parallel = access.parallel;
  return options;
}

}  // namespace dtrain::job
