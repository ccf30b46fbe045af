// How a job's agents are started, as its options say.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/elastic/crew.hpp>
#include <dtrain/launcher/agent_registry.hpp>
#include <dtrain/launcher/ssh_launcher.hpp>

#include "config/job_options.hpp"
#include "job_folder.hpp"

namespace dtrain::job {

// What to do where a scheduler's commands are missing.
constexpr const char* kSlurmHint = "install Slurm's commands (Debian: slurm-client) or put their folder in PATH";
constexpr const char* kGridHint =
    "install Grid Engine's commands (Debian: gridengine-client) or put their folder in PATH";

// `note`: takes lines for people, from any thread.
using Note = std::function<void(const std::string& line)>;
std::unique_ptr<elastic::AgentLauncher> make_launcher(const config::JobOptions& options, const JobFolder& folder,
                                                      Note note);
// Of the cluster that this machine is in. UsageError: it is in none.
launcher::AgentRegistry own_registry();
// For one that reaches other machines: with the keys of this process's user, and the job's known_hosts.
launcher::SshLauncherOptions ssh_launcher_options(const config::JobOptions& options, const JobFolder& folder,
                                                  Note note);

// Of the job that is coordinated from here; empty without --sync-dst-dir.
SyncedFolder synced_folder(const config::JobOptions& options, const JobFolder& folder);
// Whether its files are to be had on this machine: on the coordinator's, and on others if it lies beside the job
// folder.
bool is_here(const SyncedFolder& sync, const CoordinatorFile& coordinator, const JobFolder& folder);
void take_along(const SyncedFolder& sync, const JobFolder& folder, launcher::SshLauncherOptions& ssh);

// What workers on other machines have in their environment besides their own: variables of dtrain and of the libraries
// that it calls, and those that --env names.
std::vector<std::string> travelling_environment(const std::vector<std::string>& own,
                                                const std::vector<std::string>& chosen);

}  // namespace dtrain::job
