#include <dtrain/cluster/cluster_head.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <tuple>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/signals.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/agents.hpp>
#include <dtrain/cluster/budget.hpp>
#include <dtrain/cluster/own_folders.hpp>
#include <dtrain/cluster/power.hpp>
#include <dtrain/cluster/user_data.hpp>
#include <dtrain/launcher/program_archive.hpp>

namespace dtrain::cluster {
namespace {

using namespace std::chrono_literals;
constexpr auto kPause = 2s;
constexpr auto kConnectDeadline = 10s;
constexpr auto kUntilKeys = 3min;  // sshd of a booting machine answers before the key pair is brought to its user

std::string on_node(const char* name) { return fmt::format("{}/{}", cluster::kNodeFolder, name); }

void pause() {
  const auto until = std::chrono::steady_clock::now() + kPause;
  while (std::chrono::steady_clock::now() < until) {
    if (stop_signal() != 0) throw Stopped("stopped by a signal");
    std::this_thread::sleep_for(50ms);
  }
}

// Why no job of the queue may run, from the tags; empty: jobs may. Tags that dtrain does not write hold nothing.
std::string hold_of(const cluster::Fleet& fleet) {
  if (is_stopped(fleet)) return "the cluster is to stop";
  try {
    const auto wish = tagged_wish(fleet);
    if (!wish || !wish->budget) return {};
    const Spending spending = tagged_spending(fleet);
    if (budget_state(*wish->budget, spending.dollars) != BudgetState::spent) return {};
    return budget_text(*wish->budget, spending) + " are spent";
  } catch (const DataError&) {
    return {};
  }
}

Path own_home() { return environment("HOME").value_or("/"); }

net::SshOptions own_ssh_options() {
  return net::user_ssh_options(own_home(), environment("SSH_AUTH_SOCK").value_or(""));
}

// Logs in as the first possible user of the image that is accepted.
net::SshSession log_in(const cluster::Fleet& fleet, const cluster::Node& node, const std::stop_token& stop) {
  const std::vector<std::string> logins = logins_of(fleet);
  net::SshOptions options = cluster_ssh_options(fleet.name);
  options.stop = stop;
  for (std::size_t i = 0;; ++i) {
    try {
      return net::SshSession::connect(ssh_target(node, logins[i]), options);
    } catch (const net::SshHostKeyChanged&) {
      throw;
    } catch (const RemoteError&) {
      if (i + 1 == logins.size()) throw;
    }
  }
}

net::SshSession log_in_to_head(const cluster::Fleet& fleet, std::chrono::seconds patience,
                               const ClusterHead::Note& note, const std::stop_token& stop) {
  const cluster::Node* head = fleet.head();
  if (!head) {
    throw UsageError(fmt::format("cluster {} has no head", fleet.name),
                     fmt::format("dtrain cluster up {}", fleet.name));
  }
  if (head->state == "stopped" || head->state == "stopping") {
    throw RemoteError(fmt::format("the head of cluster {} is {}", fleet.name, head->state),
                      fmt::format("dtrain cluster start {} starts it", fleet.name));
  }
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + patience;
  std::optional<Clock::time_point> until_keys;
  for (std::string said;;) {
    try {
      return log_in(fleet, *head, stop);
    } catch (const net::SshHostKeyChanged&) {
      throw;
    } catch (const RemoteError& error) {
      if (!until_keys && dynamic_cast<const net::SshLoginRefused*>(&error) != nullptr) {
        until_keys = Clock::now() + kUntilKeys;
      }
      if (Clock::now() > std::min(until, until_keys.value_or(until))) throw;
      if (said != error.what()) note(error.what());
      said = error.what();
    }
    pause();
  }
}

}  // namespace

std::vector<std::string> logins_of(const cluster::Fleet& fleet) {
  if (fleet.on_emr()) return {"hadoop"};
  const auto image = fleet.options.find("image");
  if (image != fleet.options.end() && image->second == "amazon-linux") return {"ec2-user"};
  if (image != fleet.options.end() && image->second.starts_with("ami-")) return {"ubuntu", "ec2-user", "admin", "root"};
  return {"ubuntu"};
}

net::SshOptions cluster_ssh_options(const std::string& cluster) {
  net::SshOptions options = own_ssh_options();
  const Path folder = make_folder_of_cluster(cluster);
  // Addresses are used again by other machines, inside a cluster too: its file knows them by instance id, and the
  // user's own files may hold keys of earlier ones.
  options.known_hosts = folder / "known_hosts";
  options.user_known_hosts.clear();
  options.new_host_keys = net::NewHostKeys::accept;
  options.connect_deadline = kConnectDeadline;
  return options;
}

const std::string& address_of(const cluster::Node& node) {
  return node.public_ip.empty() ? node.private_ip : node.public_ip;
}

net::SshTarget ssh_target(const cluster::Node& node, const std::string& user) {
  return {.host = address_of(node), .user = user, .host_key_alias = node.instance_id};
}

void warn_of_locked_key(const std::string& cluster, const std::string& public_key, Reporter& reporter) {
  bool can_log_in = true;
  std::ignore = attempt([&] { can_log_in = net::can_log_in_with(public_key, {.host = cluster}, own_ssh_options()); });
  if (can_log_in) return;
  reporter.warn(
      "a login with your public key may fail: no ssh agent has its private key, and ~/.ssh has none that needs no "
      "passphrase; ssh-add loads it");
}

ClusterHead::ClusterHead(const cluster::Fleet& fleet, std::chrono::seconds patience, Note note, std::stop_token stop)
    : note_(std::move(note)), session_(log_in_to_head(fleet, patience, note_, stop)) {}

Json ClusterHead::ask(const Json& question) {
  std::string said, complaint;
  net::SshCommand command{.argv = {on_node("bundle/dtrain"), "agent", "--ask"}, .input = question.dump()};
  command.skip_login_text = true;
  command.on_output = [&](std::string_view text) { said += text; };
  command.on_error = [&](std::string_view text) { complaint += text; };
  if (session_.run(command).ok()) return Json::parse(said, "the answer of the cluster's head");
  throw RemoteError(fmt::format("{}: {}", session_.name(), trim(complaint)));
}

bool ClusterHead::has_program() { return session_.stat(on_node("bundle/dtrain")).has_value(); }

bool ClusterHead::waits_for_program() { return session_.stat(on_node("incoming/wanted")).has_value(); }

// The head may find the program in the shared folder meanwhile.
void ClusterHead::bring_program(std::chrono::seconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;; pause()) {
    if (has_program()) return;
    if (waits_for_program()) break;
    if (std::chrono::steady_clock::now() < until) continue;
    throw RemoteError(fmt::format("{}: the boot of the head has not come to where it takes dtrain within {}",
                                  session_.name(), format_duration(patience)),
                      "dtrain cluster logs NAME head shows its boot; the same command waits again");
  }
  const std::string wanted(trim(session_.read_file(on_node("incoming/wanted"))));
  const std::string place = on_node(fmt::format("incoming/{}.tar", wanted).c_str());
  if (session_.stat(place)) return;  // an earlier upload is being unpacked
  const Path file = temporary_folder() / fmt::format("dtrain_{}.tar", ::getpid());
  const launcher::ProgramArchive archive = launcher::write_program_archive(file);
  std::error_code ignored;
  if (archive.sha256 == wanted) {
    note_(fmt::format("brings dtrain to the head: {}", format_bytes(archive.size)));
    session_.put_file(file, place, 0644);
  }
  std::filesystem::remove(file, ignored);
  if (archive.sha256 == wanted) return;
  throw UsageError("the cluster was made by another dtrain, and waits for that program",
                   "run the dtrain that made it, or recreate the cluster");
}

std::optional<launcher::AgentRegistry> registry_of(const std::string& cluster) {
  auto registry = launcher::read_agent_registry(launcher::kAgentRegistryFile);
  if (registry && registry->cluster != cluster) registry.reset();
  return registry;
}

Json announcement(const cluster::Fleet& fleet) {
  Json instances = Json::object();
  for (const cluster::Node& node : fleet.nodes) {
    instances[node.instance_id] = Json::object({{"address", node.private_ip}, {"name", node.name}});
  }
  Json question = Json::object({{"ask", "announce"}, {"instances", std::move(instances)}});
  if (fleet.launch_template) question["launch_template"] = fleet.launch_template->id;
  if (const std::string hold = hold_of(fleet); !hold.empty()) question["hold"] = hold;
  return question;
}

// After a restart of the machine the file is that of the registry before, until a new one answers.
void ClusterHead::announce_until(const cluster::Fleet& fleet, std::chrono::steady_clock::time_point until) {
  for (;; pause()) {
    try {
      return announce(fleet);
    } catch (const RemoteError& error) {
      if (std::chrono::steady_clock::now() > until) throw;
      note_(error.what());
    }
  }
}

Json ClusterHead::wait_for_nodes(const cluster::Fleet& fleet, std::chrono::seconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  const bool head_only = fleet.options.contains("head-only");
  const std::size_t wanted = fleet.nodes.size() - (head_only ? 1 : 0);
  while (!session_.stat(launcher::kAgentRegistryFile) && std::chrono::steady_clock::now() < until) pause();
  announce_until(fleet, until);
  for (;;) {
    Json list = ask(Json::object({{"ask", "list"}}));
    std::size_t connected = 0;
    for (const Json& node : list.at("nodes").as_array()) connected += node.at("connected").as_bool() ? 1 : 0;
    const bool failed = !failed_boots(fleet, list).empty();
    if (connected >= wanted || failed || std::chrono::steady_clock::now() > until) return list;
    note_(fmt::format("{} of {} nodes are registered", connected, wanted));
    pause();
  }
}

ExitCode settle_nodes(const cluster::Fleet& fleet, std::chrono::seconds patience, Reporter& reporter) {
  bool is_in = false;
  const auto tell = [&](const std::string& line) {
    if (is_in) return reporter.detail(line);
    reporter.note(fmt::format("waits for the head: {}", line));
  };
  ClusterHead head(fleet, patience, tell);
  is_in = true;
  head.bring_program(patience);
  const Json list = head.wait_for_nodes(fleet, patience);
  const std::vector<Json> failures = failed_boots(fleet, list);
  for (const Json& failure : failures) {
    reporter.warn(fmt::format("{}: {} ended with exit code {}", failure.at("address").as_string(),
                              failure.at("stage").as_string(), failure.at("exit_code").as_integer()));
    for (const std::string& line : split(trim(failure.at("log").as_string()), '\n')) reporter.warn("  " + line);
  }
  std::size_t connected = 0;
  for (const Json& node : list.at("nodes").as_array()) connected += node.at("connected").as_bool() ? 1 : 0;
  reporter.note(fmt::format("{} nodes are registered with the head", connected));
  if (failures.empty() && connected + (fleet.options.contains("head-only") ? 1 : 0) >= fleet.nodes.size()) {
    return ExitCode::ok;
  }
  reporter.warn(
      fmt::format("not all nodes are registered; `dtrain cluster logs {} NODE` shows the boot of a node", fleet.name));
  return ExitCode::partly_done;
}

}  // namespace dtrain::cluster
