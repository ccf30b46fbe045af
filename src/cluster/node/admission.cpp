#include <dtrain/cluster/admission.hpp>

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include <dtrain/base/hash.hpp>
#include <dtrain/base/secret.hpp>

namespace dtrain::cluster {
namespace {

constexpr std::size_t kSecretBytes = 32, kLongestWord = 128;
constexpr std::string_view kWordMarks = "._:-";

}  // namespace

std::string new_admission_secret() { return to_hex(unpredictable_bytes(kSecretBytes)); }

std::string failure_proof(const std::string& admission_secret) {
  return to_hex(hmac_sha256(admission_secret, "dtrain: a node that cannot boot"));
}

bool is_plain_word(std::string_view text) {
  const auto is_plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kWordMarks.find(c) != kWordMarks.npos;
  };
  return text.size() <= kLongestWord && std::ranges::all_of(text, is_plain);
}

bool is_ipv4(const std::string& text) {
  in_addr parsed{};
  std::array<char, INET_ADDRSTRLEN> again{};
  return ::inet_pton(AF_INET, text.c_str(), &parsed) == 1 &&
         ::inet_ntop(AF_INET, &parsed, again.data(), again.size()) != nullptr && text == again.data();
}

std::string why_implausible(const Identity& identity) {
  if (!is_ipv4(identity.address)) return "its address is no IPv4 address";
  const std::pair<const char*, const std::string*> words[] = {{"account", &identity.account},
                                                              {"region", &identity.region},
                                                              {"instance id", &identity.instance_id},
                                                              {"zone", &identity.zone},
                                                              {"type", &identity.type}};
  for (const auto& [name, word] : words) {
    if (word->empty() || !is_plain_word(*word)) return fmt::format("its {} is not valid", name);
  }
  return {};
}

Identity identity_from(std::string_view document) {
  const Json json = Json::parse(document, "an identity document");
  return {.account = json.at("accountId").as_string(),
          .region = json.at("region").as_string(),
          .instance_id = json.at("instanceId").as_string(),
          .address = json.at("privateIp").as_string(),
          .zone = json.at("availabilityZone").as_string(),
          .type = json.at("instanceType").as_string()};
}

Admission admit(const Identity& node, const std::string& peer_address, const Identity& own,
                const std::map<std::string, std::string>& announced) {
  if (const std::string why = why_implausible(node); !why.empty()) return {.reason = why};
  if (node.account != own.account || node.region != own.region) {
    return {.reason = fmt::format("{} is of another account or region", node.instance_id)};
  }
  if (node.address != peer_address) {
    return {.reason =
                fmt::format("{} has the address {}, and {} speaks", node.instance_id, node.address, peer_address)};
  }
  if (node.instance_id == own.instance_id && node.address == own.address) return {.admitted = true};
  const auto known = announced.find(node.instance_id);
  if (known == announced.end()) {
    return {.reason = fmt::format("{} is not yet announced as a node of the cluster", node.instance_id)};
  }
  if (known->second != node.address) {
    return {.reason = fmt::format("{} has the address {} in the account", node.instance_id, known->second)};
  }
  return {.admitted = true};
}

}  // namespace dtrain::cluster
