// Agents on other machines, brought there by a cluster's own starter: mpirun, srun, qrsh. One starter process for each
// host lives as long as the host's agent; whatever it and the agent say goes to the agent's log in the job folder. What
// the agent needs to know lies in a file there that only its owner can read, and that the agent removes.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/elastic/crew.hpp>

namespace dtrain::launcher {

enum class Starter { open_mpi, hydra, srun, qrsh };

struct StarterLauncherOptions {
  Starter starter = Starter::open_mpi;
  Path program;                              // of the starter
  std::vector<std::string> environment{};    // of the starters
  std::vector<std::string> agent_command{};  // empty: this program's own `agent`, at the same path on the hosts
  std::string announce;                      // numeric address where hosts reach the coordinator; empty: all of its own
  std::chrono::milliseconds start_deadline{60'000};  // until an agent took what it must know
  // Asked when the launcher ends: another coordinator has the job now, so agents must live on. Empty: never.
  std::function<bool()> job_goes_on{};
};

class StarterLauncher final : public elastic::AgentLauncher {
 public:
  explicit StarterLauncher(StarterLauncherOptions options);
  // Gives up starts that are under way. Unless the job goes on: waits until the starters ended, as they do with their
  // agents, and ends those that do not; takes up to 10 s.
  ~StarterLauncher() override;
  StarterLauncher(const StarterLauncher&) = delete;

  void start(const elastic::HostLine& host, const elastic::AgentJoin& join, Failed failed) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct StarterProgram {
  Starter starter = Starter::open_mpi;
  Path program;
};
// Open MPI or MPICH and its kin, whatever `mpirun` is in this list of folders ("/usr/bin:/bin"). UsageError: there is
// none, or it is neither.
StarterProgram find_mpirun(const std::string& folders);
// UsageError: the program is not in this list of folders; `hint`: what to do about it.
Path find_program(const std::string& name, const std::string& folders, const std::string& hint);

// This program's command line as other machines that see the same files can run it.
std::vector<std::string> program_by_path();

// Names of those variables that tell a process which one it is of those that a starter started: a worker that found
// them would take itself for rank 0 of 1.
std::vector<std::string> variables_of_starters(const std::vector<std::string>& environment);
// The same environment without keys: a starter hands all that it has to other machines.
std::vector<std::string> without_secrets(std::vector<std::string> environment);

// The join with the addresses where the coordinator, which listens on all of this machine's, can be reached.
elastic::AgentJoin with_own_addresses(elastic::AgentJoin join, const std::string& announce);

}  // namespace dtrain::launcher
