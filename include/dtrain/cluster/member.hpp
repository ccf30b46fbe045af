// A host of a registered cluster, asked over ssh: `dtrain agent --registered` there reads one question and writes one
// answer.
//   {"ask": "look", "cluster", "folder", "probe"}   -> HostFacts
//   {"ask": "join", "cluster", "folder", "key"}     -> {}: the host belongs to the cluster, and the key opens it ("":
//   none)
//   {"ask": "leave", "cluster", "folder", "key"}    -> {}: neither any more
// An error is an answer too: {"error": error_to_json()}.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/cluster/checkup.hpp>
#include <dtrain/cluster/registered.hpp>
#include <dtrain/launcher/program_copy.hpp>
#include <dtrain/net/ssh.hpp>

namespace dtrain::cluster {

struct HostFacts {
  std::string machine{};  // the same for two names of one machine, until it is started again
  std::string host_name{};
  int cpus = 0;
  std::uint64_t memory = 0, disk_free = 0;     // bytes; of the shared folder's disk
  std::optional<std::string> other_cluster{};  // that the host belongs to, with its folder
  bool sees_shared = false;                    // the file `probe` is there
  Checkup checkup{};
  std::optional<ClockOffset> clock{};  // against the asking machine
};

// On the host: the answer to a question of this page; nullopt: it is another one. Throws Error.
std::optional<Json> answer_as_member(const Json& question);

// The answer of the program on the other machine. Throws the error that it answers, as UsageError or RemoteError, and
// RemoteError if it does not answer.
Json ask_there(net::SshSession& session, const std::vector<std::string>& program, const Json& question,
               std::chrono::milliseconds deadline = std::chrono::seconds(60));

// Brings the program to the host, and looks at it. Throws RemoteError for a host on which the program cannot run.
struct LookedAt {
  std::vector<std::string> program{};
  HostFacts facts{};
};
LookedAt look_at_host(net::SshSession& session, launcher::ProgramCopy& program, const RegisteredCluster& cluster,
                      const std::string& probe);

}  // namespace dtrain::cluster
