#include <fmt/format.h>

#include <set>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/stack.hpp>
#include <dtrain/launcher/program_copy.hpp>
#include <dtrain/net/ssh.hpp>

#include "hosts/program_check.hpp"
#include "logins.hpp"

namespace dtrain::cluster {
namespace {

constexpr std::chrono::seconds kForTools{20};
// Prints what the boot of a node needs and an older image may lack.
constexpr const char* kMissingTools =
    "PATH=$PATH:/usr/sbin:/sbin; for one in flock setsid tar sha256sum; do command -v $one >/dev/null || echo $one; "
    "done; command -v curl >/dev/null || command -v wget >/dev/null || echo 'curl or wget'";

Fleet fleet_of(const ClusterRequest& request, const Stack& stack, const Adoption& adoption) {
  Fleet fleet{.name = request.name, .options = request.options};
  for (const StackMachine& one : stack.machines) {
    Node& node = fleet.nodes.emplace_back(one.node);
    const auto worker = adoption.workers.find(node.instance_id);
    const bool is_head = worker == adoption.workers.end();
    node.role = is_head ? Role::head : Role::worker;
    node.name = is_head ? "head" : worker->second;
  }
  return fleet;
}

void check_tools(net::SshSession& session) {
  const Said said = said_by(session, {.shell = kMissingTools}, kForTools);
  const std::string missing = join(split(std::string(trim(said.output)), '\n'), ", ");
  if (!missing.empty()) throw RemoteError(fmt::format("{} lacks {}", session.name(), missing));
}

// A copy that this made is taken away: the machine gets dtrain from the head of the cluster.
void check_program(net::SshSession& session, launcher::ProgramCopy& program) {
  const launcher::ProgramCopy::Ready ready = program.make_ready(session);
  check_starts(session, ready.command);
  if (ready.copied == 0) return;
  const std::string folder = Path(ready.command.front()).parent_path().string();
  static_cast<void>(session.run({.argv = {"rm", "-rf", folder}, .deadline = kForTools}));
}

std::optional<net::SshSession> log_in_if_possible(const MachineLogins& logins, const Node& node) {
  try {
    return logins.log_in(node);
  } catch (const RemoteError&) {
    return std::nullopt;  // the installation says why
  }
}

}  // namespace

std::vector<std::string> machines_without_dtrain(const ClusterRequest& request, const Stack& stack,
                                                 const Adoption& adoption) {
  const Fleet fleet = fleet_of(request, stack, adoption);
  const MachineLogins logins(fleet);
  launcher::ProgramCopy program;
  std::vector<const Node*> nodes;
  std::set<const Node*> tried;  // one of each image and type starts the program
  std::set<std::pair<std::string, std::string>> kinds;
  for (const Node& node : fleet.nodes) {
    if (node.state != "running") continue;
    nodes.push_back(&node);
    if (program.is_bundle() && kinds.emplace(node.image_id, node.type).second) tried.insert(&node);
  }
  return on_each(nodes, [&](const Node& node) {
    std::optional<net::SshSession> session = log_in_if_possible(logins, node);
    if (!session) return;
    check_kind(*session);
    check_tools(*session);
    if (tried.contains(&node)) check_program(*session, program);
  });
}

}  // namespace dtrain::cluster
