#include "job_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/spec.hpp>
#include <dtrain/net/addresses.hpp>

#include "exchange/sum_options.hpp"
#include "option_values.hpp"

namespace dtrain::config {
namespace {

std::string notice_url(const std::string& text) {
  const bool is_url = text.starts_with("http://") || text.starts_with("https://");
  if (is_url || text == "auto" || text == "none") return text;
  throw UsageError(fmt::format("must be auto, none or a URL that begins with http:// or https://, not '{}'", text));
}

void bind_start(OptionSet& set, JobOptions& options) {
  set.add(
         "-n,--num-workers", options.hosts, "N",
         "number of hosts that train together; with -H, the first N hosts of the file (default all hosts of -H, of the "
         "batch job or of the cluster, else 1)",
         at_least(1))
      .legacy_variable = "DEEPLEARNING_WORKERS_COUNT";
  bind_hostfile(set, options.hostfile);
  add_choice(
      set, "--launcher", options.launcher, kLauncherNames,
      "how agents start on the hosts. local: as processes on this machine. ssh: on the hosts of -H. auto: ssh with -H, "
      "else local. agents: on the nodes of this machine's cluster. mpi, slurm, sge: by mpirun, srun or qrsh on the "
      "hosts of the batch job. yarn: in containers. folder: on the machines where `dtrain hosts join` waits in the job "
      "folder. kubernetes: in pods of a cluster. `dtrain help launchers` explains each")
      .not_from_project = true;
  set.add("--queue", options.queue, "NAME", "partition or queue of the requested batch job, for slurm, sge and yarn");
  set.add("--sge-pe", options.sge_pe, "NAME", "parallel environment of the requested batch job, for sge");
  set.add("--yarn-rm", options.yarn_manager, "URL", "address of YARN's ResourceManager, as http://HOST:8088")
      .not_from_project = true;
  set.add("--yarn-memory", options.yarn_memory, "MIB", "memory of an agent's YARN container, in MiB", at_least(1));
  set.add("--yarn-cores", options.yarn_cores, "N", "number of cores of an agent's YARN container", at_least(1));
}

constexpr int kMostPriority = 1000, kMostRetries = 1000;

std::string joined_names(const std::vector<std::string>& variables) {
  std::string names;
  for (const std::string& variable : variables) {
    names += (names.empty() ? "" : ",") + variable.substr(0, variable.find('='));
  }
  return names;
}

void require_variable_name(std::string_view name, const std::string& word) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  if (!name.empty() && name.find_first_of(kBlanks) == name.npos) return;
  throw UsageError(fmt::format("'{}': the name of a variable {}", word, name.empty() ? "is missing" : "holds no blank"),
                   "give NAME=VALUE, as in OMP_NUM_THREADS=4");
}

}  // namespace

std::vector<std::string> variables_from(const std::string& text) {
  std::vector<std::string> variables;
  for (std::string word : split(text, kBetweenRepeated)) {
    if (const std::size_t end = word.find_first_of("=:"); end != word.npos) {
      require_variable_name(std::string_view(word).substr(0, end), word);
      word[end] = '=';
      variables.push_back(word);
      continue;
    }
    for (const std::string& name : split(word, ',')) {
      require_variable_name(name, word);
      if (const auto value = environment(name)) variables.push_back(name + "=" + *value);
    }
  }
  return variables;
}

namespace {

void bind_ssh(OptionSet& set, JobOptions& options) {
  set.add_zero_or_one("--sync-binary", options.sync_binary,
                      "over ssh, 1 makes hosts run this program and copies it to hosts that lack it if it is a bundle. "
                      "0 makes hosts run the dtrain that they have at the same path");
  bind_ssh_config(set, options.ssh_config);
  set.add("--announce", options.announce, "ADDRESS",
          "numeric address at which hosts reach this machine (default the local end of each ssh connection, else "
          "all addresses of this machine)")
      .not_from_project = true;
  set.add("--sync-dst-dir", options.sync_to, "DIR",
          "over ssh, copy the current folder, without .git, the job folder and links to folders, to DIR on each host "
          "before the host joins, and run the workers in DIR. Only files that differ are copied")
      .not_from_project = true;
  Option& variables = set.add_custom(
      "--env", "NAME[=VALUE]",
      "environment variable for the workers; NAME alone passes on this process's value, and NAME:VALUE is the same as "
      "NAME=VALUE. Workers on other machines get only these and dtrain's own variables, without DTRAIN_CONFIG. The "
      "option may be repeated",
      [&options](const std::string& text) { options.environment = variables_from(text); },
      [&options] { return joined_names(options.environment); });
  variables.flag_only = variables.repeats = true;
}

void bind_job_files(OptionSet& set, JobOptions& options) {
  bind_job_folder(set, options.folder);
  set.add("--detach", options.detach,
          "return once the job runs, and keep it running without the terminal. With --cluster or --job-queue, give the "
          "job to the queue of the cluster or folder, which resumes it after losses; see `dtrain jobs`");
  bind_job_queue(set, options.job_queue, "with --detach, folder of the queue that runs the job");
  set.add("--priority", options.priority, "N",
          "with --detach, priority of the job in the queue: a waiting job with a larger number starts first. A job "
          "that runs is not interrupted",
          between(-kMostPriority, kMostPriority));
  set.add("--retries", options.retries, "N",
          "with --detach, how often in a row the queue restarts a job that failed without a newer checkpoint, after "
          "pauses from 3 s to 2 minutes",
          between(0, kMostRetries));
  set.add("--down-when-done", options.down_when_done,
          "with --detach and --cluster, end all machines of the cluster a minute after the last job of its queue; "
          "refused for a cluster that `dtrain cluster adopt` made")
      .flag_only = true;
  set.add("--prometheus", options.prometheus, "keep metrics.prom in the job folder up to date, for Prometheus");
}

void bind_training_files(OptionSet& set, JobOptions& options) {
  set.find("job-dir")->help +=
      ". A training in one process writes its events, curves and options there, or to PREFIX-run beside its "
      "checkpoints";
  set.add("--reset-hosts", options.reset_hosts, "write the job folder's host_worker again from -H, even with --resume");
  set.add("--sample-ledger", options.sample_ledger, "record the samples that each step consumes in ledger/");
  set.add("--log-per-worker", options.log_per_worker, "also show the output of every worker, each line with its host");
}

// What a host must pass before it may join.
void bind_gate(OptionSet& set, JobOptions& options) {
  set.add("--prepare", options.prepare, "CMD",
          "command that a joining host runs first, as `sh -c CMD`. Exit code 0 leaves prepare_data_success_HOST in the "
          "job folder, and a host with this file skips the command")
      .not_from_project = true;
  set.add("--prepare-all", options.prepare_all, "also check the initial hosts and run --prepare on them");
  Option& notice = set.add(
      "--notice-url", options.notice_url, "auto|none|URL",
      "URL at which each host learns that its machine will be terminated; {host} stands for the host's name. auto "
      "uses EC2's instance metadata where it exists");
  notice.set = [&options](const std::string& text) { options.notice_url = notice_url(text); };
  notice.not_from_project = true;
  add_seconds(set, "--prepare-timeout", options.prepare_timeout, "time limit for --prepare, in seconds", more_than(0));
}

void bind_waits(OptionSet& set, JobOptions& options) {
  add_seconds(
      set, "--heartbeat-timeout", options.heartbeat_timeout,
      "evict a worker that sends no heartbeat for S seconds. A coordinator on another machine is replaced after S "
      "seconds, at least 3",
      more_than(0));
  add_seconds(
      set, "--comm-timeout", options.comm_timeout,
      "longest wait for other workers within a step, in seconds; between GPUs (--transport nccl) for each shard",
      more_than(0));
  add_seconds(set, "--hold-timeout", options.hold_timeout,
              "seconds to wait for hosts while fewer than --min-workers are left; the job then saves a checkpoint and "
              "stops. 0 waits without limit",
              at_least(0));
}

// The job folder changes while files are copied and compared.
void check_sync(const JobOptions& options) {
  if (options.sync_to.empty()) return;
  if (!options.is_over_ssh()) {
    throw UsageError("--sync-dst-dir: all workers run on this machine, in the current folder",
                     "use it with -H and --launcher ssh, or leave it out");
  }
  if (!options.sync_to.starts_with('/')) {
    throw UsageError(fmt::format("--sync-dst-dir {}: not an absolute path", options.sync_to),
                     "give the folder on the hosts as a path that begins with /");
  }
  std::error_code ignored;
  if (std::filesystem::equivalent(options.folder, ".", ignored)) {
    throw UsageError("--sync-dst-dir: the current folder is the job folder, whose files change during the job",
                     "choose another job folder with --job-dir");
  }
}

// Agents look up no names, and know no card for an address that is only of a link.
void check_announce(const JobOptions& options) {
  const std::string& address = options.announce;
  const bool is_of_a_machine =
      net::is_numeric(address) && !net::is_any_address(address) && !net::is_link_local(address);
  if (address.empty() || is_of_a_machine) return;
  throw UsageError(
      fmt::format("--announce {}: no numeric address at which other machines reach this one", options.announce),
      "give an address of this machine, such as 10.0.0.7 or fd00::7");
}

UsageError no_queue_of_dtrain(const char* option) {
  return UsageError(fmt::format("--{}: not supported by --launcher kubernetes, which has a queue of its own", option),
                    "leave it out; --detach returns once the job is applied");
}

void check_for_kubernetes(const JobOptions& options, const OptionSet& set) {
  if (options.is_for_queue()) throw no_queue_of_dtrain("job-queue");
  for (const char* name : {"priority", "retries", "down-when-done", "job-queue"}) {
    const Option* option = set.find(name);
    const bool is_chosen_for_user = name == std::string_view("job-queue") && set.chosen("cluster");
    if (option && option->source == Source::flag && !is_chosen_for_user) throw no_queue_of_dtrain(name);
  }
  check_kubernetes(options.kubernetes);
}

// Options that mean something to some launchers only.
struct LauncherOption {
  const char* name;
  std::vector<Launcher> launchers;
};

void check_launcher(const JobOptions& options, const OptionSet& set) {
  static const std::vector<LauncherOption> kOnly = {{"ssh-config", {Launcher::ssh}},
                                                    {"sync-binary", {Launcher::ssh}},
                                                    {"announce",
                                                     {Launcher::ssh, Launcher::agents, Launcher::mpi, Launcher::slurm,
                                                      Launcher::sge, Launcher::yarn, Launcher::folder}},
                                                    {"queue", {Launcher::slurm, Launcher::sge, Launcher::yarn}},
                                                    {"sge-pe", {Launcher::sge}},
                                                    {"yarn-rm", {Launcher::yarn}},
                                                    {"yarn-memory", {Launcher::yarn}},
                                                    {"yarn-cores", {Launcher::yarn}},
                                                    {"kube-image", {Launcher::kubernetes}},
                                                    {"kube-name", {Launcher::kubernetes}},
                                                    {"kube-namespace", {Launcher::kubernetes}},
                                                    {"kube-context", {Launcher::kubernetes}},
                                                    {"kube-claim", {Launcher::kubernetes}},
                                                    {"kube-storage", {Launcher::kubernetes}},
                                                    {"kube-storage-class", {Launcher::kubernetes}},
                                                    {"kube-cpus", {Launcher::kubernetes}},
                                                    {"kube-memory", {Launcher::kubernetes}},
                                                    {"kube-gpus", {Launcher::kubernetes}},
                                                    {"kube-print", {Launcher::kubernetes}}};
  const Launcher launcher = options.used_launcher();
  for (const LauncherOption& only : kOnly) {
    const Option* option = set.find(only.name);
    if (!option || option->source != Source::flag ||
        std::ranges::find(only.launchers, launcher) != only.launchers.end())
      continue;
    std::vector<std::string> names;
    for (const Launcher one : only.launchers) names.push_back(enum_name(kLauncherNames, one));
    throw UsageError(
        fmt::format("--{}: not supported by --launcher {}", only.name, enum_name(kLauncherNames, launcher)),
        fmt::format("use it with --launcher {}", fmt::join(names, ", ")));
  }
  if (launcher == Launcher::yarn && options.yarn_manager.empty()) {
    throw UsageError("--launcher yarn needs the address of a ResourceManager", "add --yarn-rm http://HOST:8088");
  }
  if (launcher == Launcher::yarn && options.hostfile) {
    throw UsageError("-H: not supported by --launcher yarn, because YARN chooses the hosts",
                     "leave it out; -n is the number of agents");
  }
  if ((options.is_by_folder() || options.is_on_kubernetes()) && options.hostfile) {
    throw UsageError(fmt::format("-H: not supported by --launcher {}, because the hosts come by themselves",
                                 enum_name(kLauncherNames, launcher)),
                     "leave it out; -n is the number of hosts with which the job begins");
  }
  if (options.is_on_kubernetes()) check_for_kubernetes(options, set);
}

}  // namespace

void bind_hostfile(OptionSet& set, std::optional<Path>& file) {
  Option& option = set.add("-H,--hostfile", file,
                           "host file with one host per line: name, or user@host:port, each optionally with slots=n");
  option.legacy_variable = "DEEPLEARNING_WORKERS_PATH";
  option.not_from_project = true;
}

void bind_ssh_config(OptionSet& set, std::optional<Path>& file) {
  set.add("--ssh-config", file, "ssh configuration file (default ~/.ssh/config)").not_from_project = true;
}

void bind_cluster_choice(OptionSet& set) {
  set.add_custom(
         "--cluster", "NAME", "run this command on the head of this cluster, in its shared folder",
         [](const std::string& name) { cluster::check_cluster_name(name); }, [] { return std::string(); })
      .flag_only = true;
}

void bind_job_queue(OptionSet& set, std::optional<Path>& folder, const char* help) {
  set.add("--job-queue", folder, help).not_from_project = true;
}

void bind_job_folder(OptionSet& set, Path& folder) {
  Option& option =
      set.add("--job-dir", folder,
              "job folder, which holds host_worker, events, logs and the ledger. All hosts of a job must see it at the "
              "same path");
  option.legacy_variable = "EFS_MOUNT";
  option.offers = Offers::jobs;
  bind_cluster_choice(set);
}

void bind_hosts(OptionSet& set, JobOptions& options) {
  set.group(kHostGroup);
  bind_start(set, options);
  bind_ssh(set, options);
  bind_job_files(set, options);
  bind_waits(set, options);
}

void bind_training_hosts(OptionSet& set, JobOptions& options) {
  bind_hosts(set, options);
  bind_sums(set, options);
  bind_training_files(set, options);
}

void bind_elastic(OptionSet& set, JobOptions& options) {
  bind_kubernetes(set, options.kubernetes);
  set.group(kElasticGroup);
  set.add("--elastic", options.elastic,
          "let hosts join or leave during the job, by `dtrain hosts` or by editing host_worker. If "
          "WORKER_LAUNCH_TEMPLATE_ID and ELASTIC_WORKER_TAG are set, as on a cluster's head, the job also follows the "
          "tags of the cluster's instances, like `dtrain cluster watch`");
  set.add_custom(
         "--elastic-training-enabled", "True|False", "MXNet's name for --elastic",
         [&options](const std::string& text) { options.elastic = true_or_false(text); },
         [&options] { return options.elastic ? "True" : "False"; })
      .same_as = "elastic";
  set.add("--min-workers", options.min_workers, "N",
          "minimum number of workers. With fewer the job waits for more, and the remaining workers keep their state",
          at_least(1));
  set.add(
      "--max-workers", options.max_workers, "N",
      "maximum number of workers; further hosts are spares. 0 for twice the initial number of hosts, at least 8. Where "
      "workers share each step, never more than its logical shards",
      at_least(0));
  set.add("--allow-mass-remove", options.allow_mass_remove,
          "allow an edit of host_worker to remove more than half of the hosts")
      .not_from_project = true;
  bind_gate(set, options);
}

void bind_training_elastic(OptionSet& set, JobOptions& options) {
  bind_elastic(set, options);
  add_choice(set, "--elastic-boundary", options.boundary, kBoundaryNames,
             "when a planned change of hosts takes effect: at the next epoch or the next step");
  add_choice(
      set, "--elastic-batch", options.batch, train::kElasticBatchNames,
      "fixed-global keeps the samples per step, so that the result has the same bits with any number of workers. "
      "per-worker keeps --batch-size for each worker, so that steps grow with their number");
  add_choice(
      set, "--elastic-lr", options.rate, train::kElasticRateNames,
      "with --elastic-batch per-worker, how the learning rate follows the batch: smooth over --elastic-ramp steps, "
      "linear at once, none not at all");
  set.add("--elastic-ramp", options.ramp, "STEPS",
          "number of steps over which --elastic-lr smooth changes the learning rate", at_least(1));
  add_choice(
      set, "--mixed-hardware", options.mixed_hardware, kMixedHardwareNames,
      "refuse or allow workers that would compute different bits because of their processor features, libraries or "
      "program");
}

void check_hosts(const JobOptions& options, const OptionSet& set) {
  check_launcher(options, set);
  if (options.launcher == Launcher::ssh && !options.hostfile) {
    throw UsageError("--launcher ssh needs hosts", "add -H FILE, a file with one host per line");
  }
  check_announce(options);
  check_sync(options);
  if (!options.prepare.empty() && !options.elastic && !options.prepare_all) {
    throw UsageError("--prepare: no host joins later without --elastic",
                     "add --elastic, or --prepare-all to run it on the initial hosts");
  }
  if (options.max_workers > 0 && options.max_workers < options.min_workers) {
    throw UsageError(
        fmt::format("--max-workers {}: must be at least --min-workers {}", options.max_workers, options.min_workers));
  }
}

}  // namespace dtrain::config
