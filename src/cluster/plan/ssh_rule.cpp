#include "ssh_rule.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include <dtrain/base/text.hpp>

namespace dtrain::cluster {
namespace {

using Block = std::array<unsigned char, 17>;  // the network's bytes, and the number of its bits

std::optional<Block> block_of(const std::string& cidr) {
  const std::size_t slash = cidr.find('/');
  if (slash == cidr.npos) return std::nullopt;
  const bool six = cidr.find(':') != cidr.npos;
  const int most = six ? 128 : 32;
  const auto bits = parse_integer(cidr.substr(slash + 1));
  Block block{};
  if (!bits || *bits < 0 || *bits > most) return std::nullopt;
  if (inet_pton(six ? AF_INET6 : AF_INET, cidr.substr(0, slash).c_str(), block.data()) != 1) return std::nullopt;
  for (int bit = static_cast<int>(*bits); bit < most; ++bit) {
    block[static_cast<std::size_t>(bit / 8)] &= static_cast<unsigned char>(~(0x80 >> (bit % 8)));
  }
  block.back() = static_cast<unsigned char>(*bits);
  return block;
}

}  // namespace

bool is_same_block(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto first = block_of(a), second = block_of(b);
  return first && first == second;
}

bool is_open_to(const SecurityGroup& group, const std::string& source) {
  return std::ranges::any_of(group.ssh_sources, [&](const auto& one) { return is_same_block(one, source); });
}

SshChange ssh_change(const SecurityGroup& group, const std::string& source) {
  SshChange change{.opens = !is_open_to(group, source)};
  for (const std::string& old : group.own_ssh_sources) {
    if (!is_same_block(old, source)) change.closes.push_back(old);
  }
  return change;
}

std::vector<std::string> other_sources(const SecurityGroup& group, const std::string& source) {
  std::vector<std::string> others;
  for (const std::string& one : group.ssh_sources) {
    const bool is_own = std::ranges::find(group.own_ssh_sources, one) != group.own_ssh_sources.end();
    if (!is_own && !is_same_block(one, source)) others.push_back(one);
  }
  return others;
}

std::string ssh_change_text(const SshChange& change, const std::string& source) {
  const std::string closed = join(change.closes, ", ");
  if (!change.opens) return fmt::format("close port 22 to {}", closed);
  return fmt::format("open port 22 to {}{}", source, closed.empty() ? "" : ", and close it to " + closed);
}

}  // namespace dtrain::cluster
