// The launcher of a job's agents, chosen by its options. Threads: the coordinator's thread makes the launcher, calls
// start(), which does not wait for the agent to join, and destroys it. Launchers report failures by `failed` and
// progress by `note`, from threads of their own; both must be safe from any thread, and the coordinator passes them on
// to its loop. A failed start concerns its host alone: the coordinator quarantines that host and retries later. The
// destructor cancels starts in progress and waits for the launcher's threads, so nothing is called after it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/elastic/agent_pool.hpp>
#include <dtrain/elastic/voters.hpp>
#include <dtrain/launcher/agent_registry.hpp>
#include <dtrain/launcher/ssh_launcher.hpp>
#include <dtrain/launcher/starter_launcher.hpp>

#include "config/job_options.hpp"
#include "job_folder.hpp"

namespace dtrain::job {

// Hints for missing commands of a scheduler.
constexpr const char* kSlurmHint = "install Slurm's commands (Debian: slurm-client) or put their folder in PATH";
constexpr const char* kGridHint =
    "install Grid Engine's commands (Debian: gridengine-client) or put their folder in PATH";

// `note`: takes lines for the user, from any thread. `inherited`: agents that an earlier coordinator started.
using Note = std::function<void(const std::string& line)>;
std::unique_ptr<elastic::AgentLauncher> make_launcher(const config::JobOptions& options, const JobFolder& folder,
                                                      std::vector<elastic::Voter> inherited, Note note);
// The registry of the cluster that this machine is in. Throws UsageError if it is in none.
launcher::AgentRegistry own_registry();
// Options of an ssh launcher with the keys of this process's user and the job's known_hosts.
launcher::SshLauncherOptions ssh_launcher_options(const config::JobOptions& options, const JobFolder& folder,
                                                  Note note);

// The synchronised folder of a job that is coordinated here; empty without --sync-dst-dir.
SyncedFolder synced_folder(const config::JobOptions& options, const JobFolder& folder);
// Whether the files of that folder are available on this machine: on the coordinator's, and on others if the folder is
// on the file system of the job folder.
bool is_here(const SyncedFolder& sync, const CoordinatorFile& coordinator, const JobFolder& folder);
void take_along(const SyncedFolder& sync, const JobFolder& folder, launcher::SshLauncherOptions& ssh);

// The environment of workers on other machines: variables of dtrain, except DTRAIN_CONFIG, and of the libraries that it
// calls, and those that --env names.
std::vector<std::string> travelling_environment(const std::vector<std::string>& own,
                                                const std::vector<std::string>& chosen);
// The same with what the command itself needs to start again on a host that a scheduler chooses.
std::vector<std::string> submitted_environment(const std::vector<std::string>& own,
                                               const std::vector<std::string>& chosen);
// The environment of a process starter, which passes all of it on to other machines: this process's without
// DTRAIN_CONFIG and keys of AWS, and that of srun without options of a step.
std::vector<std::string> environment_of_starter(launcher::ProcessStarter starter, std::vector<std::string> own);

}  // namespace dtrain::job
