#include "placeholders.hpp"

#include <fmt/format.h>

#include <utility>

namespace dtrain::external {
namespace {

using Replacement = std::pair<std::string, std::string>;

std::string replaced(const std::string& word, const std::vector<Replacement>& replacements) {
  std::string result;
  for (std::size_t at = 0; at < word.size();) {
    std::size_t step = 0;
    for (const auto& [name, value] : replacements) {
      if (word.compare(at, name.size(), name) != 0) continue;
      result += value;
      step = name.size();
      break;
    }
    if (step == 0) result += word[at];
    at += step == 0 ? 1 : step;
  }
  return result;
}

}  // namespace

std::vector<std::string> fill_placeholders(std::vector<std::string> command, const Cast& cast, Role role, int index) {
  const std::vector<Replacement> replacements = {{"{rank}", std::to_string(index)},
                                                 {"{role}", role_name(role)},
                                                 {"{task_index}", std::to_string(index)},
                                                 {"{ps_hosts}", server_hosts(cast)},
                                                 {"{worker_hosts}", worker_hosts(cast)}};
  for (std::string& word : command) word = replaced(word, replacements);
  return command;
}

std::string server_hosts(const Cast& cast) {
  std::vector<std::string> hosts;
  for (int server = 0; server < cast.servers; ++server) hosts.push_back(cast.address_of_server(server));
  return fmt::format("{}", fmt::join(hosts, ","));
}

std::string worker_hosts(const Cast& cast) {
  std::vector<std::string> hosts;
  for (const Seat& seat : cast.seats) hosts.push_back(fmt::format("{}:{}", seat.address, seat.ports[tensorflow_port]));
  return fmt::format("{}", fmt::join(hosts, ","));
}

}  // namespace dtrain::external
