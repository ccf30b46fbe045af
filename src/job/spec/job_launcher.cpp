#include "job_launcher.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/process.hpp>
#include <dtrain/launcher/allocation.hpp>
#include <dtrain/launcher/folder_launcher.hpp>
#include <dtrain/launcher/kubernetes.hpp>
#include <dtrain/launcher/local_launcher.hpp>
#include <dtrain/launcher/registry_launcher.hpp>
#include <dtrain/launcher/yarn_launcher.hpp>

#include "process_facts.hpp"

namespace dtrain::job {
namespace {

// Variables that describe a machine, such as CUDA_VISIBLE_DEVICES, and credentials are not passed on.
constexpr std::array<std::string_view, 13> kTravelling = {"DTRAIN_",
                                                          "DEEPLEARNING_",
                                                          "EFS_MOUNT=",
                                                          "WORKER_LAUNCH_TEMPLATE_ID=",
                                                          "ELASTIC_WORKER_TAG=",
                                                          "AWS_REGION=",
                                                          "AWS_DEFAULT_REGION=",
                                                          "AWS_ENDPOINT_URL",
                                                          "NCCL_",
                                                          "GLOO_",
                                                          "OMP_",
                                                          "ONEDNN_",
                                                          "DNNL_"};

// What a program needs to be found and to start as it would here; no credentials.
constexpr std::array<std::string_view, 13> kSubmitted = {
    "PATH=", "LD_LIBRARY_PATH=", "PYTHONPATH=", "PYTHONHOME=",  "LANG=",         "LC_", "VIRTUAL_ENV=", "CONDA_PREFIX=",
    "TERM=", "NO_COLOR=",        "XDG_",        "AWS_PROFILE=", "DTRAIN_CONFIG="};

// The path of a file of this machine: dtrain refuses a file that is not there, so a host without it could run no
// dtrain command for the job. Workers get the options that it gave with their job.
constexpr std::string_view kConfigOfThisMachine = "DTRAIN_CONFIG=";

void append_chosen(const std::vector<std::string>& from, std::span<const std::string_view> leads,
                   std::vector<std::string>& to) {
  std::ranges::copy_if(from, std::back_inserter(to), [&](const std::string& variable) {
    return std::ranges::any_of(leads, [&](std::string_view lead) { return variable.starts_with(lead); });
  });
}

// Without what is true of this machine and this process alone.
std::vector<std::string> without_config(std::vector<std::string> environment) {
  const std::string pod = std::string(launcher::kPodVariable) + "=";
  std::erase_if(environment, [&](const std::string& variable) {
    return variable.starts_with(kConfigOfThisMachine) || variable.starts_with(pod);
  });
  return environment;
}

bool same_file_system(const Path& one, const Path& other) {
  struct stat of_one {
  }, of_other{};
  return ::stat(one.c_str(), &of_one) == 0 && ::stat(other.c_str(), &of_other) == 0 && of_one.st_dev == of_other.st_dev;
}

}  // namespace

std::vector<std::string> travelling_environment(const std::vector<std::string>& own,
                                                const std::vector<std::string>& chosen) {
  std::vector<std::string> variables;
  append_chosen(own, kTravelling, variables);
  return with_variables(without_config(std::move(variables)), chosen);
}

std::vector<std::string> submitted_environment(const std::vector<std::string>& own,
                                               const std::vector<std::string>& chosen) {
  std::vector<std::string> variables;
  append_chosen(own, kSubmitted, variables);
  return with_variables(std::move(variables), travelling_environment(own, chosen));
}

std::vector<std::string> environment_of_starter(launcher::ProcessStarter starter, std::vector<std::string> own) {
  std::vector<std::string> variables = launcher::without_secrets(without_config(std::move(own)));
  if (starter != launcher::ProcessStarter::srun) return variables;
  return launcher::without_step_options(std::move(variables));
}

SyncedFolder synced_folder(const config::JobOptions& options, const JobFolder& folder) {
  if (options.sync_to.empty()) return {};
  const Path here = std::filesystem::current_path();
  return {options.sync_to, here, same_file_system(here, folder.path)};
}

bool is_here(const SyncedFolder& sync, const CoordinatorFile& coordinator, const JobFolder& folder) {
  if (sync.to.empty() || coordinator.host == host_name()) return true;
  return sync.shared && same_file_system(sync.from, folder.path);
}

launcher::SshLauncherOptions ssh_launcher_options(const config::JobOptions& options, const JobFolder& folder,
                                                  Note note) {
  launcher::SshLauncherOptions ssh;
  ssh.ssh = net::user_ssh_options(environment("HOME").value_or("/"), environment("SSH_AUTH_SOCK").value_or(""));
  if (options.ssh_config) net::use_only(*options.ssh_config, ssh.ssh);
  ssh.ssh.known_hosts = folder.known_hosts();
  ssh.ssh.new_host_keys = net::NewHostKeys::accept_unless_strict;
  ssh.sync_binary = options.sync_binary;
  ssh.announce = options.announce;
  take_along(synced_folder(options, folder), folder, ssh);
  ssh.on_note = std::move(note);
  return ssh;
}

namespace {

// The paths of a file or folder below `above`: as it is named, and where links lead. None: it is elsewhere.
std::vector<std::string> paths_below(const Path& above, const Path& file) {
  std::error_code ignored;
  std::vector<std::string> paths;
  for (const Path& path : {std::filesystem::absolute(file).lexically_normal().lexically_relative(above),
                           std::filesystem::weakly_canonical(file, ignored)
                               .lexically_relative(std::filesystem::weakly_canonical(above, ignored))}) {
    if (path.empty() || *path.begin() == "..") continue;
    paths.push_back((path.has_filename() ? path : path.parent_path()).string());  // without a '/' at its end
  }
  return paths;
}

}  // namespace

void take_along(const SyncedFolder& sync, const JobFolder& folder, launcher::SshLauncherOptions& ssh) {
  ssh.copy_from = sync.from;
  ssh.copy_to = sync.to;
  ssh.not_copied = {.patterns = {".git"}, .paths = paths_below(sync.from, folder.path)};
}

namespace {

launcher::StarterProgram starter_of(const config::JobOptions& options) {
  const std::string folders = environment("PATH").value_or("");
  if (options.launcher == config::Launcher::mpi) return launcher::find_mpirun(folders);
  if (options.launcher == config::Launcher::slurm)
    return {launcher::ProcessStarter::srun, launcher::find_program("srun", folders, kSlurmHint)};
  return {launcher::ProcessStarter::qrsh, launcher::find_program("qrsh", folders, kGridHint)};
}

// Whether another coordinator took over the job of this process.
bool goes_on(const JobFolder& folder) {
  try {
    const auto file = read_coordinator(folder);
    return file && !file->over();
  } catch (const Error&) {  // unknown: an extra process does less harm than a lost job
    return true;
  }
}

std::unique_ptr<elastic::AgentLauncher> make_starter_launcher(const config::JobOptions& options,
                                                              const JobFolder& folder) {
  const launcher::StarterProgram starter = starter_of(options);
  launcher::StarterLauncherOptions chosen{.starter = starter.starter,
                                          .program = starter.program,
                                          .environment = environment_of_starter(starter.starter, own_environment()),
                                          .announce = options.announce,
                                          .job_goes_on = [folder] { return goes_on(folder); }};
  if (starter.starter == launcher::ProcessStarter::srun) chosen.gpus = launcher::find_granted_gpus(environment);
  return std::make_unique<launcher::StarterLauncher>(std::move(chosen));
}

std::unique_ptr<elastic::AgentLauncher> make_local_launcher(const config::JobOptions& options, const JobFolder& folder,
                                                            std::vector<elastic::Voter> inherited) {
  launcher::LocalLauncherOptions local{.inherited = std::move(inherited)};
  if (options.outlives_coordinator()) local.job_goes_on = [folder] { return goes_on(folder); };
  return std::make_unique<launcher::LocalLauncher>(std::move(local));
}

std::unique_ptr<elastic::AgentLauncher> make_yarn_launcher(const config::JobOptions& options) {
  const auto user = environment("HADOOP_USER_NAME");
  return std::make_unique<launcher::YarnLauncher>(
      launcher::YarnLauncherOptions{.resource_manager = options.yarn_manager,
                                    .user = user ? *user : environment("USER").value_or(""),
                                    .queue = options.queue,
                                    .memory = options.yarn_memory,
                                    .cores = options.yarn_cores,
                                    .announce = options.announce});
}

}  // namespace

launcher::AgentRegistry own_registry() {
  if (auto registry = launcher::read_agent_registry(launcher::kAgentRegistryFile)) return *registry;
  throw UsageError("--launcher agents: this machine is no node of a cluster",
                   "`dtrain cluster up` makes clusters; --cluster NAME trains on one from here");
}

std::unique_ptr<elastic::AgentLauncher> make_launcher(const config::JobOptions& options, const JobFolder& folder,
                                                      std::vector<elastic::Voter> inherited, Note note) {
  if (options.launcher == config::Launcher::yarn) return make_yarn_launcher(options);
  if (options.is_by_folder()) {
    return std::make_unique<launcher::FolderLauncher>(launcher::FolderLauncherOptions{
        .job_folder = std::filesystem::absolute(folder.path), .announce = options.announce});
  }
  if (options.is_by_agents()) return std::make_unique<launcher::RegistryLauncher>(own_registry(), options.announce);
  if (options.is_by_starter()) return make_starter_launcher(options, folder);
  if (!options.is_over_ssh()) return make_local_launcher(options, folder, std::move(inherited));
  return std::make_unique<launcher::SshLauncher>(ssh_launcher_options(options, folder, std::move(note)));
}

}  // namespace dtrain::job
