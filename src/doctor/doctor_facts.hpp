// What `dtrain doctor` finds on one machine, as plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/base/json.hpp>

#include "doctor_nvidia.hpp"

namespace dtrain::doctor {

struct DiskFacts {
  std::string use;  // what dtrain keeps there
  std::string path;
  std::uint64_t free_bytes = 0, free_files = 0;
  std::string error{};  // why nothing can be written there; empty: it can
};

struct SshFacts {
  bool agent_named = false;       // SSH_AUTH_SOCK is set
  std::optional<int> agent_keys;  // nullopt: it does not answer
  int key_files = 0;              // private keys in ~/.ssh under their usual names
};

// Variables that a cluster's set-up leaves behind, and what they point at.
struct ClusterVariables {
  std::map<std::string, std::string> variables;  // those that are set
  bool has_workers_file = false;                 // it is there, and can be used
  int workers_in_file = 0;
  std::string workers_error{};  // why it cannot
  bool has_mount = false;
  std::string mount_error{};  // why it cannot be looked at
};

struct AwsFacts {
  bool asked = false;
  std::string source{}, account{}, name{};  // of the credentials; empty: there are none
  std::string region{};
  std::string identity_error{};
  std::string hint{};      // of the first error
  bool is_bundle = false;  // this program, which `cluster up` gives to the nodes
};

struct MachineFacts {
  std::string host, kernel, processor;
  std::string machine;                // machine_identity()
  std::vector<std::string> features;  // that oneDNN's kernels use, the widest last
  int usable_threads = 0, threads = 0;
  double load = 0;  // processes that want to run, over the last minute
  std::uint64_t memory_bytes = 0, free_memory_bytes = 0;
  std::uint64_t descriptors = 0;      // files and connections that one process may have open
  std::optional<bool> clock_is_kept;  // by NTP; nullopt: the kernel does not say
  std::vector<DiskFacts> disks;
  SshFacts ssh;
  NvidiaFacts nvidia;
  ClusterVariables cluster;
  AwsFacts aws;
  // What could not be looked at.
  struct Unread {
    std::string about, error;
  };
  std::vector<Unread> unread;
};

// The variables of a cluster, in the order in which its guide lists them.
const std::vector<std::string>& cluster_variables();

// Looks at this machine. `job_folder`: empty for none. `ask_aws`: also reads the identity in AWS, which takes seconds
// if AWS does not answer.
MachineFacts read_machine(const Path& job_folder, bool ask_aws);
AwsFacts read_aws();

Json to_json(const MachineFacts& facts);

}  // namespace dtrain::doctor
