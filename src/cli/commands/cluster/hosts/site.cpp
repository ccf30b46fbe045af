#include "site.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/launcher/fan_out.hpp>
#include <dtrain/launcher/ssh_launcher.hpp>

#include "job/report/stop_tokens.hpp"

namespace dtrain::cli {

std::string unfit_text(const std::vector<SeenHost>& hosts) {
  std::string text;
  for (const SeenHost& host : hosts) {
    if (host.is_fit()) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n", host.name, host.why);
  }
  return text;
}

void Site::note_copy(const launcher::ProgramCopy::Ready& ready, const std::string& host) {
  if (ready.copied > 0) reporter_.note(fmt::format("Copied dtrain to {}: {} MB", host, ready.copied >> 20));
}

Json Site::ask_head(const cluster::RegisteredHost& head, const Json& question, std::chrono::seconds deadline) {
  if (!head_) {
    const job::StopWatch watch;
    net::SshOptions options = cluster::ssh_options_of_registered(name_);
    options.stop = watch.token();
    head_ = net::SshSession::connect(head.target(), options);
    const launcher::ProgramCopy::Ready ready = program_.make_ready(*head_);
    note_copy(ready, head.name);
    head_program_ = ready.command;
  }
  return cluster::ask_there(*head_, head_program_, question, deadline);
}

template <typename Work>
std::vector<SeenHost> Site::on_all(const std::vector<cluster::RegisteredHost>& hosts, const Work& work) {
  std::vector<SeenHost> seen(hosts.size());
  std::vector<net::SshTarget> targets;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    seen[i].name = hosts[i].name;
    targets.push_back(hosts[i].target());
  }
  const job::StopWatch watch;
  net::SshOptions options = cluster::ssh_options_of_registered(name_);
  options.stop = watch.token();
  launcher::fan_out(
      targets, {.ssh = options}, [&](std::size_t host, net::SshSession& session) { seen[host].facts = work(session); },
      [&](std::size_t host, const auto& failure, auto) {
        if (!failure) return;
        seen[host].why = launcher::start_failure(net::to_string(targets[host]), Error(failure->what)).reason;
        seen[host].hint = failure->hint;
      });
  return seen;
}

std::vector<SeenHost> Site::look(const cluster::RegisteredCluster& cluster, const std::string& probe) {
  return on_all(cluster.hosts, [&](net::SshSession& session) {
    return cluster::look_at_host(session, program_, cluster, probe).facts;
  });
}

std::vector<SeenHost> Site::tell(const char* ask, const cluster::RegisteredCluster& cluster,
                                 const std::vector<cluster::RegisteredHost>& hosts, const std::string& key) {
  const Json question =
      Json::object({{"ask", ask}, {"cluster", cluster.name}, {"folder", cluster.folder}, {"key", key}});
  return on_all(hosts, [&](net::SshSession& session) {
    cluster::ask_there(session, program_.make_ready(session).command, question);
    return cluster::HostFacts{};
  });
}

}  // namespace dtrain::cli
