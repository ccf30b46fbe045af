// How a node and the head of its cluster recognise each other.
//
// Both know the admission secret of the cluster from their user data, and both use ports below 1024, which only root of
// a machine can. They meet over TLS with the admission secret as pre-shared key: so the node knows that the head
// answers, and the head knows that root of a machine with the cluster's user data asks. The head further compares the
// address from which the node speaks with that of the node's identity document, and with an announcement of a user with
// credentials (`up`, `add`, `status`, `watch`), who saw the instance in the account with the cluster's tags. Then it
// gives the cluster's token to the node. Users of a node can read the user data, but have no such port.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <dtrain/base/json.hpp>

namespace dtrain::cluster {

// The purpose of the secret's connections.
inline constexpr const char* kAdmissionPurpose = "admission";
// 256 bits as lower-case hex.
std::string new_admission_secret();
// What a node that cannot boot puts before its report, which travels in clear: it does not lead to the secret.
std::string failure_proof(const std::string& admission_secret);

struct Identity {
  std::string account, region, instance_id, address, zone, type;
};
// The instance identity document of the metadata service. Throws DataError.
Identity identity_from(std::string_view document);

struct Admission {
  bool admitted = false;
  std::string reason{};  // why it is refused; for the node's log and for the user
};

// Empty if an honest node could say this of itself, otherwise what is wrong. What the head accepts reaches /etc/hosts,
// logs and terminals.
std::string why_implausible(const Identity& identity);
// Whether the text is made of letters, digits and "._:-", at most 128 of them.
bool is_plain_word(std::string_view text);
// Whether the text is an IPv4 address in the usual form.
bool is_ipv4(const std::string& text);

// `own`: identity of the head. `announced`: {instance id: private address}, from the latest announcement. Pure.
Admission admit(const Identity& node, const std::string& peer_address, const Identity& own,
                const std::map<std::string, std::string>& announced);

}  // namespace dtrain::cluster
