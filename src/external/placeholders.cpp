#include "placeholders.hpp"

#include <fmt/format.h>

#include <utility>

#include <dtrain/net/addresses.hpp>

namespace dtrain::external {
namespace {

using Replacement = std::pair<std::string, std::string>;

std::string replaced(const std::string& message, const std::vector<Replacement>& replacements) {
  std::string result;
  for (std::size_t at = 0; at < message.size();) {
    std::size_t step = 0;
    for (const auto& [name, value] : replacements) {
      if (message.compare(at, name.size(), name) != 0) continue;
      result += value;
      step = name.size();
      break;
    }
    if (step == 0) result += message[at];
    at += step == 0 ? 1 : step;
  }
  return result;
}

}  // namespace

std::vector<std::string> fill_placeholders(std::vector<std::string> command, const RankPlacement& placement, int rank,
                                           Role role, int index) {
  const std::vector<Replacement> replacements = {{"{rank}", std::to_string(index)},
                                                 {"{local_rank}", std::to_string(placement.local_rank(rank))},
                                                 {"{role}", role_name(role)},
                                                 {"{task_index}", std::to_string(index)},
                                                 {"{ps_hosts}", server_hosts(placement)},
                                                 {"{worker_hosts}", worker_hosts(placement)}};
  for (std::string& message : command) message = replaced(message, replacements);
  return command;
}

std::string server_hosts(const RankPlacement& placement) {
  std::vector<std::string> hosts;
  for (int server = 0; server < placement.servers; ++server) hosts.push_back(placement.address_of_server(server));
  return fmt::format("{}", fmt::join(hosts, ","));
}

std::string worker_hosts(const RankPlacement& placement, int first) {
  std::vector<std::string> hosts;
  for (std::size_t rank = static_cast<std::size_t>(first); rank < placement.ranks.size(); ++rank) {
    const RankInfo& info = placement.ranks[rank];
    hosts.push_back(fmt::format("{}:{}", net::in_brackets(info.address), info.ports[tensorflow_port]));
  }
  return fmt::format("{}", fmt::join(hosts, ","));
}

}  // namespace dtrain::external
