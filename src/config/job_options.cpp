#include "job_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/cluster/spec.hpp>

#include "option_values.hpp"

namespace dtrain::config {
namespace {

std::string known_store(const std::string& text) {
  if (text == "dist_async") {
    throw UsageError("dist_async needs parameter servers, whose order of updates no run can repeat",
                     "use dist_sync or dist_device_sync: workers add their gradients themselves, and one that is slow "
                     "or gone may leave (--elastic)");
  }
  static const std::vector<std::string> known = {"local", "device", "dist_sync", "dist_device_sync"};
  return one_of(text, known);
}

bool true_or_false(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return yes_or_no(text);
}

void bind_start(OptionSet& set, JobOptions& options) {
  set.add("-n,--num-workers", options.hosts, "N", "hosts that train together; with -H the first N of the file",
          at_least(1))
      .legacy_variable = "DEEPLEARNING_WORKERS_COUNT";
  bind_hostfile(set, options.hostfile);
  set.add_choice(
      "--launcher", options.launcher, {"auto", "local", "ssh", "agents", "mpi", "slurm", "sge", "yarn"},
      "how agents come to hosts: ssh, to those of -H; local, as processes here; auto: ssh with -H, else local; "
      "agents: on the nodes of the cluster that this machine is in, all of them without -H; "
      "mpi: by mpirun, to those of -H or of the batch job that this is in; slurm, sge: by srun or qrsh, to those of "
      "the job that this is in, or that the command asks for and runs itself again in; yarn: into containers. "
      "`dtrain help launchers` tells more");
  set.add("--queue", options.queue, "NAME", "slurm, sge, yarn: the partition or queue of the job that is asked for");
  set.add("--sge-pe", options.sge_pe, "NAME", "sge: the parallel environment of the job that is asked for");
  set.add("--yarn-rm", options.yarn_manager, "URL", "yarn: the ResourceManager, as http://HOST:8088");
  set.add("--yarn-memory", options.yarn_memory, "MIB", "yarn: memory of an agent's container", at_least(1));
  set.add("--yarn-cores", options.yarn_cores, "N", "yarn: cores of an agent's container", at_least(1));
}

std::string joined_names(const std::vector<std::string>& variables) {
  std::string names;
  for (const std::string& variable : variables) {
    names += (names.empty() ? "" : ",") + variable.substr(0, variable.find('='));
  }
  return names;
}

}  // namespace

std::vector<std::string> variables_from(const std::string& text) {
  std::vector<std::string> variables;
  for (std::string word : split(text, kBetweenRepeated)) {
    if (const std::size_t end = word.find_first_of("=:"); end != word.npos) {
      word[end] = '=';
      variables.push_back(word);
      continue;
    }
    for (const std::string& name : split(word, ',')) {
      if (const auto value = environment(name); value && !name.empty()) variables.push_back(name + "=" + *value);
    }
  }
  return variables;
}

namespace {

void bind_ssh(OptionSet& set, JobOptions& options) {
  set.add_zero_or_one(
      "--sync-binary", options.sync_binary,
      "over ssh: 1: hosts run this very program; where it is a bundle, hosts that lack it get a copy. 0: "
      "hosts have a dtrain at this one's path");
  bind_ssh_config(set, options.ssh_config);
  set.add("--announce", options.announce, "ADDRESS",
          "where hosts reach this machine; else the end of their ssh connection here, or any of its addresses");
  set.add("--sync-dst-dir", options.sync_to, "DIR",
          "over ssh: each host gets the current folder's content in DIR before it joins, only what differs, without "
          ".git and the job folder; workers run there");
  Option& variables = set.add_custom(
      "--env", "NAME[=VALUE]",
      "a variable that workers get; on other machines they have only those of dtrain besides. NAME:VALUE means the "
      "same; "
      "may be given again",
      [&options](const std::string& text) { options.environment = variables_from(text); },
      [&options] { return joined_names(options.environment); });
  variables.flag_only = variables.repeats = true;
}

void bind_sums(OptionSet& set, JobOptions& options) {
  set.add("-s,--num-servers", options.servers, "N", "not needed: gradients are added by the workers", at_least(0));
  set.add_custom(
      "--kv-store", "local|device|dist_sync|dist_device_sync",
      "MXNet's name for where gradients are added. All give the same bits: shards of one worker are added in its "
      "memory (local, device), those of several workers between them, without servers (dist_sync, dist_device_sync). "
      "Given, device and dist_device_sync choose --transport nccl for workers on GPUs where NCCL is",
      [&options](const std::string& text) { options.kv_store = known_store(text); },
      [&options] { return options.kv_store; });
  set.add_choice("--transport", options.transport, {"tcp", "gloo", "nccl"},
                 "what carries gradients: tcp authenticates every connection; gloo is there to compare; nccl adds them "
                 "up on the GPUs of workers that have one each, and authenticates nothing");
  set.add_choice("--gradient-dtype", options.gradient_dtype, {"float32", "bfloat16"},
                 "how gradients are added and sent; bfloat16 halves the traffic and gives other bits");
}

void bind_job_files(OptionSet& set, JobOptions& options) {
  bind_job_folder(set, options.folder);
  set.add("--detach", options.detach, "return once the job runs; it outlives the terminal");
  set.add("--prometheus", options.prometheus, "keep metrics.prom in the job folder up to date, as Prometheus reads it");
}

void bind_training_files(OptionSet& set, JobOptions& options) {
  set.add("--reset-hosts", options.reset_hosts, "make the job folder's host_worker anew from -H, also with --resume");
  set.add("--sample-ledger", options.sample_ledger, "write which samples every step consumed to ledger/");
  set.add("--log-per-worker", options.log_per_worker, "show what every worker says too, with its host before it");
}

// What a host must pass before it may join.
void bind_gate(OptionSet& set, JobOptions& options) {
  set.add("--prepare", options.prepare, "CMD",
          "runs on a newcomer before it may join, as `sh -c CMD`; exit 0 leaves prepare_data_success_HOST in the job "
          "folder, and where that file is already it does not run");
  set.add("--prepare-all", options.prepare_all, "the hosts of the start run --prepare too, and are checked");
  set.add("--notice-url", options.notice_url, "auto|none|URL",
          "where hosts ask whether their machine is to end: auto is EC2's instance metadata, on EC2; {host} in a URL "
          "stands for the host's name");
  set.add("--prepare-timeout", options.prepare_timeout, "S", "--prepare must end within", more_than(0));
}

void bind_waits(OptionSet& set, JobOptions& options) {
  set.add(
      "--heartbeat-timeout", options.heartbeat_timeout, "S",
      "a worker that is silent for so long is evicted; on other machines a coordinator, after at least 3, is replaced",
      more_than(0));
  set.add("--comm-timeout", options.comm_timeout, "S", "longest wait for other workers inside a step", more_than(0));
  set.add("--hold-timeout", options.hold_timeout, "S",
          "with fewer than --min-workers: wait so long, then save and stop; 0: for ever", at_least(0));
}

// The job folder changes while files are copied and compared.
void check_sync(const JobOptions& options) {
  if (options.sync_to.empty()) return;
  if (!options.is_over_ssh()) {
    throw UsageError("--sync-dst-dir: all workers run in this folder already", "it goes with -H and --launcher ssh");
  }
  if (!options.sync_to.starts_with('/')) {
    throw UsageError(fmt::format("--sync-dst-dir {}: not a whole path", options.sync_to),
                     "give the folder on the hosts from / on");
  }
  std::error_code ignored;
  if (std::filesystem::equivalent(options.folder, ".", ignored)) {
    throw UsageError("--sync-dst-dir: the current folder is the job folder, which changes all the time",
                     "give the job a folder of its own: --job-dir");
  }
}

// Options that mean something to some launchers only.
struct LauncherOption {
  const char* name;
  std::vector<std::string> launchers;
};

void check_launcher(const JobOptions& options, const OptionSet& set) {
  static const std::vector<LauncherOption> kOnly = {{"ssh-config", {"ssh"}},
                                                    {"sync-binary", {"ssh"}},
                                                    {"announce", {"ssh", "agents", "mpi", "slurm", "sge", "yarn"}},
                                                    {"queue", {"slurm", "sge", "yarn"}},
                                                    {"sge-pe", {"sge"}},
                                                    {"yarn-rm", {"yarn"}},
                                                    {"yarn-memory", {"yarn"}},
                                                    {"yarn-cores", {"yarn"}}};
  const std::string launcher = options.is_over_ssh() ? "ssh" : options.launcher == "auto" ? "local" : options.launcher;
  for (const LauncherOption& only : kOnly) {
    const Option* option = set.find(only.name);
    if (!option || option->source != Source::flag ||
        std::ranges::find(only.launchers, launcher) != only.launchers.end())
      continue;
    throw UsageError(fmt::format("--{} means nothing to --launcher {}", only.name, launcher),
                     fmt::format("it goes with --launcher {}", fmt::join(only.launchers, ", ")));
  }
  if (launcher == "yarn" && options.yarn_manager.empty()) {
    throw UsageError("--launcher yarn: nobody said which ResourceManager", "--yarn-rm http://HOST:8088");
  }
  if (launcher == "yarn" && options.hostfile) {
    throw UsageError("-H: YARN chooses the hosts of containers", "leave it out; -n says how many agents there are");
  }
}

}  // namespace

void bind_hostfile(OptionSet& set, std::optional<Path>& file) {
  set.add("-H,--hostfile", file, "file with one host a line: name, or user@host:port slots=n").legacy_variable =
      "DEEPLEARNING_WORKERS_PATH";
}

void bind_ssh_config(OptionSet& set, std::optional<Path>& file) {
  set.add("--ssh-config", file, "configuration of ssh in place of ~/.ssh/config");
}

void bind_cluster_choice(OptionSet& set) {
  set.add_custom(
         "--cluster", "NAME", "of this cluster: from anywhere, the command runs on its head, in the shared folder",
         [](const std::string& name) { cluster::check_cluster_name(name); }, [] { return std::string(); })
      .flag_only = true;
}

void bind_job_folder(OptionSet& set, Path& folder) {
  Option& option = set.add("--job-dir", folder, "where the job keeps host_worker, events, logs and ledger");
  option.legacy_variable = "EFS_MOUNT";
  option.offers = Offers::jobs;
  bind_cluster_choice(set);
}

void bind_hosts(OptionSet& set, JobOptions& options) {
  set.group("Hosts");
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
  set.group("Workers that come and go");
  set.add("--elastic", options.elastic,
          "edit host_worker, or say `dtrain hosts`, and workers join or leave. Where WORKER_LAUNCH_TEMPLATE_ID and "
          "ELASTIC_WORKER_TAG are set, as on a cluster's head, the tags of its instances do that too: what `dtrain "
          "cluster watch` does runs beside the job");
  set.add_custom(
      "--elastic-training-enabled", "True|False", "MXNet's name of --elastic",
      [&options](const std::string& text) { options.elastic = true_or_false(text); }, [] { return std::string(); });
  set.add("--min-workers", options.min_workers, "N", "with fewer the job waits; dtrain's workers hold their state",
          at_least(1));
  set.add("--max-workers", options.max_workers, "N", "more are spares; 0: twice the hosts of the start, at least 8",
          at_least(0));
  set.add("--allow-mass-remove", options.allow_mass_remove,
          "an edit of host_worker may remove more than half of the hosts");
  bind_gate(set, options);
}

void bind_training_elastic(OptionSet& set, JobOptions& options) {
  bind_elastic(set, options);
  set.add_choice("--elastic-boundary", options.boundary, {"epoch", "step"},
                 "when a planned change takes place: at the next epoch or the next step");
  set.add_custom(
      "--elastic-batch", "fixed-global|per-worker",
      "fixed-global: a step has G samples whatever happens, so the bits are the same; per-worker: --batch-size for "
      "each worker, so steps grow with the workers",
      [&options](const std::string& text) { options.batch = train::parse_elastic_batch(text); },
      [&options] { return std::string(train::elastic_batch_name(options.batch)); });
  set.add_custom(
      "--elastic-lr", "smooth|linear|none",
      "per-worker: how the learning rate follows the batch: over --elastic-ramp steps, at once, not at all",
      [&options](const std::string& text) { options.rate = train::parse_elastic_rate(text); },
      [&options] { return std::string(train::elastic_rate_name(options.rate)); });
  set.add("--elastic-ramp", options.ramp, "STEPS", "steps over which --elastic-lr smooth moves the learning rate",
          at_least(1));
  set.add_custom(
      "--mixed-hardware", "refuse|allow",
      "workers that would compute other bits (processor features, libraries, program): refuse them, or allow them and "
      "give the same bits up",
      [&options](const std::string& text) {
        static const std::vector<std::string> known = {"refuse", "allow"};
        options.mixed_hardware = one_of(text, known) == "allow";
      },
      [&options] { return std::string(options.mixed_hardware ? "allow" : "refuse"); });
}

void check_hosts(const JobOptions& options, const OptionSet& set) {
  check_launcher(options, set);
  if (options.launcher == "ssh" && !options.hostfile) {
    throw UsageError("--launcher ssh: nobody said which hosts", "-H names a file with one host a line");
  }
  check_sync(options);
  if (!options.prepare.empty() && !options.elastic && !options.prepare_all) {
    throw UsageError("--prepare: without --elastic no host joins later",
                     "--prepare-all runs it on the hosts of the start");
  }
  if (options.max_workers > 0 && options.max_workers < options.min_workers) {
    throw UsageError(
        fmt::format("--max-workers {}: less than --min-workers {}", options.max_workers, options.min_workers));
  }
}

void check_training_job(const JobOptions& options, const OptionSet& set) {
  if (options.is_job()) {
    check_hosts(options, set);
    if (!options.elastic && options.is_per_worker()) {
      throw UsageError("--elastic-batch per-worker: the number of workers changes only with --elastic",
                       "add --elastic, or leave it out");
    }
    return;
  }
  for (const char* name :
       {"detach", "sample-ledger", "reset-hosts", "log-per-worker", "prometheus", "prepare", "prepare-all"}) {
    if (!set.chosen(name)) continue;
    throw UsageError(fmt::format("--{}: one process that trains alone has no job folder", name),
                     "give -n, -H or --elastic too, or leave it out");
  }
}

}  // namespace dtrain::config
