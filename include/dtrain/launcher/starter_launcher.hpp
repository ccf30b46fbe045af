// Starts agents on other machines with a process starter: mpirun, srun or qrsh. One starter process for each host lives
// as long as the host's agent; the output of both goes to the agent's log in the job folder. The join document is a
// file there that only its owner can read, and that the agent removes.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/elastic/agent_pool.hpp>

namespace dtrain::launcher {

// A program that starts a process on a given host and stays until that process ends.
enum class ProcessStarter { open_mpi, hydra, srun, qrsh };

struct StarterLauncherOptions {
  ProcessStarter starter = ProcessStarter::open_mpi;
  Path program;                              // mpirun, srun or qrsh
  std::vector<std::string> environment{};    // of the starter processes
  std::vector<std::string> agent_command{};  // empty: this program's own `agent`, at the same path on the hosts
  std::string announce{};             // numeric address where hosts reach the coordinator; empty: all of its addresses
  std::map<std::string, int> gpus{};  // srun's: find_granted_gpus()
  std::chrono::milliseconds start_deadline{60'000};  // from the start to the agent's reading of the join file
  // Called when the launcher ends. true: another coordinator runs the job now, so agents must live on. Empty: never.
  std::function<bool()> job_goes_on{};
};

class StarterLauncher final : public elastic::AgentLauncher {
 public:
  explicit StarterLauncher(StarterLauncherOptions options);
  // Cancels starts in progress. Unless the job goes on under another coordinator, waits until the starters have ended,
  // which they do with their agents, and ends those that remain; takes up to 10 s.
  ~StarterLauncher() override;
  StarterLauncher(const StarterLauncher&) = delete;

  void start(const elastic::HostLine& host, const elastic::AgentOrder& join, Failed failed) override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct StarterProgram {
  ProcessStarter starter = ProcessStarter::open_mpi;
  Path program;
};
// The first `mpirun` in this list of folders ("/usr/bin:/bin"), which is that of Open MPI, of MPICH or of a relative of
// MPICH. Throws UsageError if there is none or it is of neither kind.
StarterProgram find_mpirun(const std::string& folders);
// An absolute path. Throws UsageError if the program is not in this list of folders; `hint`: what the user can do about
// it.
Path find_program(const std::string& name, const std::string& folders, const std::string& hint);

// The command line of this program on other machines that see the same files.
std::vector<std::string> program_by_path();

// Names of the variables by which a process starter tells a process its rank. A worker that found them would take
// itself for rank 0 of 1.
std::vector<std::string> variables_of_starters(const std::vector<std::string>& environment);
// The environment without what srun reads as options of a step: sbatch and salloc set them to what the user chose for
// the tasks of the job, but an agent is one task with all processors and GPUs of its host.
std::vector<std::string> without_step_options(std::vector<std::string> environment);
// The environment without keys of AWS: a process starter passes all variables on to other machines.
std::vector<std::string> without_secrets(std::vector<std::string> environment);

// The join document with the addresses of a coordinator that listens on all addresses of this machine.
elastic::AgentOrder with_own_addresses(elastic::AgentOrder join, const std::string& announce);

}  // namespace dtrain::launcher
