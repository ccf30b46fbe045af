// What `dtrain doctor security` looks at: the ports and files of one job on this machine, and the rules that judge
// them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "doctor_findings.hpp"
#include "job/spec/job_folder.hpp"

namespace dtrain::doctor {

// What guards the bytes behind a port.
enum class Guard {
  tls,        // TLS 1.3 with the job's token
  handshake,  // the same until the connection is there, plain bytes afterwards
  same_user,  // a Unix socket whose two sides check that they run as the same user
  none,
};

struct PortFacts {
  pid_t process = 0;
  std::string role;        // coordinator, agent, worker, or program
  std::string use;         // control, gradients, the name of a transport, rendezvous, or own
  std::string address;     // numeric, or the name of a Unix socket
  std::uint16_t port = 0;  // 0: a Unix socket
  Guard guard = Guard::none;
};

// The use of the file that holds a queued job's command line and environment.
inline constexpr const char* kQueuedCommand = "queued command";

struct FileFacts {
  enum class Kind {
    secret,  // only its owner may read it
    trusted  // what it says is believed
  };
  std::string path, use;
  Kind kind = Kind::trusted;
  bool folder = false;
  unsigned mode = 0;  // permissions with the sticky bit
  std::string owner, group;
};

struct SecurityFacts {
  std::string host;     // this machine
  std::string folder;   // of the job
  bool has_job = true;  // false: hosts wait there, or it is a queue of jobs
  job::CoordinatorFile coordinator;
  std::vector<pid_t> unseen;  // processes of the job whose sockets this user may not see
  std::vector<PortFacts> ports;
  std::vector<FileFacts> files;
  std::vector<std::string> unfound;  // checkpoints that the job names and that are not to be seen from here
};

// Throws UsageError if there is no job in the folder, no host waits there, and it is no queue.
SecurityFacts read_security(const job::JobFolder& folder);

std::vector<Finding> judge_ports(const SecurityFacts& facts);
std::vector<Finding> judge_files(const SecurityFacts& facts);
// What the job does without protection, on whatever machine.
std::vector<Finding> judge_choices(const SecurityFacts& facts);

Json to_json(const SecurityFacts& facts);  // without findings

// The parts of read_security(), for tests. What a process is by its command line:
std::string role_of(const std::vector<std::string>& command_line);
// What a TCP port is for: by its process, by `near`, the Unix listeners of the same process, and by the job.
PortFacts classify_port(PortFacts port, const std::vector<std::string>& near, const job::CoordinatorFile& job);

}  // namespace dtrain::doctor
