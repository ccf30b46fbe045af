#include "launch_options.hpp"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <utility>

#include <dtrain/base/cpus.hpp>
#include <dtrain/base/environment.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/base/wait_status.hpp>

namespace dtrain::config {
namespace {

// A program that fails so often although machines are exchanged will fail again.
constexpr int kElasticRestarts = 10;
constexpr int kFruitlessRestarts = 3;
constexpr std::size_t kNameBytes = 6;

struct Framework {
  std::string name;
  std::vector<std::string_view> mentioned;  // words that a file which uses it holds
};
const std::vector<Framework> kFrameworks = {{"horovod", {"import", "horovod"}},
                                            {"jax", {"jax", "distributed", "initialize("}}};

std::string checked_frameworks(const std::string& text) {
  if (text == "auto" || text == "none") return text;
  for (const std::string& name : split(text, ',')) {
    if (std::ranges::any_of(kFrameworks, [&](const Framework& known) { return known.name == name; })) continue;
    throw UsageError(fmt::format("{}: needs none of this, or is unknown", name),
                     "the names are horovod and jax; PyTorch, TensorFlow and MXNet always find their ranks");
  }
  return text;
}

bool uses(const LaunchOptions& options, const Framework& framework) {
  if (options.frameworks == "auto") return external::mentions(options.words, framework.mentioned);
  const std::vector<std::string> chosen = split(options.frameworks, ',');
  return std::ranges::find(chosen, framework.name) != chosen.end();
}

void bind_variables(OptionSet& set, const char* flag, std::vector<std::string>& field, const char* who) {
  Option& option = set.add_custom(
      flag, "NAME:VALUE",
      fmt::format("environment variable for {} only; NAME=VALUE is the same. The option may be repeated", who),
      [&field](const std::string& text) { field = variables_from(text); }, [] { return std::string(); });
  option.flag_only = option.repeats = true;
}

void bind_program(OptionSet& set, LaunchOptions& options) {
  set.group("Program");
  set.add_words("COMMAND", options.words,
                "program and arguments, after --, passed on unchanged, with all blanks and quotes");
  set.add("--nproc-per-host", options.ranks_per_host, "K|auto|gpu|cpu",
          "number of ranks on each host without slots= in -H; gpu or cpu for the number of GPUs or processors of this "
          "machine, auto for GPUs if there are any, else processors. With --launcher kubernetes they are those of a "
          "worker's pod: --kube-gpus and --kube-cpus");
  set.add("--gpus-per-rank", options.gpus_per_rank, "N",
          "number of GPUs that each rank sees: CUDA_VISIBLE_DEVICES holds the share of its local rank, so a program "
          "counts them from 0. 0 shows every rank all GPUs of its host, as torchrun does",
          at_least(0));
  set.add_custom(
      "--framework", "auto|none|NAME,...",
      "frameworks that find their ranks by more than plain variables: horovod starts the server by which its ranks "
      "meet; jax sets variables of Open MPI, in which jax.distributed.initialize() looks for its arguments. auto "
      "chooses the ones that a file of COMMAND imports",
      [&options](const std::string& text) { options.frameworks = checked_frameworks(text); },
      [&options] { return options.frameworks; });
  set.add("-s,--num-servers", options.servers, "N",
          "number of parameter servers beside the workers. Each runs the same command with a server's DMLC_ROLE and "
          "TF_CONFIG and writes its output to logs/. Rank 0 is TensorFlow's chief. MXNet's scheduler starts when a "
          "process looks for it",
          at_least(0));
  set.add("--template", options.fills_placeholders,
          "replace {rank}, {local_rank}, {role}, {task_index}, {ps_hosts} and {worker_hosts} in COMMAND, for scripts "
          "that take them as arguments. Servers get the role ps, and no scheduler is started");
  bind_variables(set, "--env-worker", options.worker_environment, "workers");
  bind_variables(set, "--env-server", options.server_environment, "servers and the scheduler");
  set.add("--no-output", options.quiet_ranks, "do not show the output of the ranks; logs/ in the job folder holds it");
}

void bind_failures(OptionSet& set, LaunchOptions& options) {
  set.group("Failures");
  set.add("--max-restarts", options.max_restarts, "R",
          fmt::format("number of times that all ranks start again after a rank fails, before the job fails. A host "
                      "that joins later and fails within {} minutes does not count: the others start again without it, "
                      "and it is tried again later (default {} with --elastic, else 0)",
                      external::kTrial.count(), kElasticRestarts),
          at_least(0));
  add_choice(
      set, "--stop-when", options.stop_when, kStopWhenNames,
      "condition for ending the job. failed: a failure after --max-restarts restarts. no-progress: also three failures "
      "in a row without a larger number in $DTRAIN_PROGRESS_FILE, which the program writes; the exit code is then 93");
  set.add("--stop-signal", options.stop_signal, "NAME",
          "signal that asks ranks to end: TERM, INT, USR1, ...; $DTRAIN_DEADLINE_FILE then holds the deadline. Without "
          "this option Ctrl-C reaches them as INT");
  set.add("--save-signal", options.save_signal, "NAME",
          "signal that the ranks get before a planned change of hosts, so that they save their state first. The change "
          "goes on once each rank has ended or written $DTRAIN_SAVED_FILE, or after --save-timeout");
  add_seconds(set, "--save-timeout", options.save_timeout, "seconds that the ranks have after --save-signal",
              between(0, 3600));
  add_seconds(set, "--grace", options.grace, "seconds after the signal until a rank that still runs is killed",
              between(0, 3600));
}

int signal_of(const char* flag, const std::string& text) {
  if (const std::optional<int> number = signal_number(text)) return *number;
  throw UsageError(fmt::format("{} {}: not the name of a signal", flag, text), "use TERM, INT, HUP, USR1, USR2, ...");
}

std::string why_no_gpu() {
  const std::optional<std::string> visible = environment("CUDA_VISIBLE_DEVICES");
  if (!visible) return "this machine has no NVIDIA GPU (no /dev/nvidia0, ...)";
  return fmt::format("no NVIDIA GPU is visible: this machine has {}, and CUDA_VISIBLE_DEVICES is \"{}\"",
                     nvidia_device_count("/dev", std::nullopt), *visible);
}

// The GPUs and processors that the words of --nproc-per-host count.
struct RankSource {
  int gpus = 0, cpus = 1;
  std::string why_no_gpu, hint;  // for gpu where there is none
};

RankSource ranks_of_this_machine() {
  const int gpus = nvidia_device_count();
  return {.gpus = gpus,
          .cpus = usable_cpus(),
          .why_no_gpu = gpus > 0 ? "" : why_no_gpu(),
          .hint = "give a number, or add slots=n to each host of -H"};
}

RankSource ranks_of_pod(const KubernetesOptions& pod) {
  return {.gpus = pod.gpus,
          .cpus = static_cast<int>(std::ceil(pod.cpus)),
          .why_no_gpu = "the pods of the workers have no GPU",
          .hint = "give a number, or add --kube-gpus N"};
}

int ranks_per_host(const std::string& text, const RankSource& source) {
  const bool either = text == "auto";
  if (text == "cpu" || (either && source.gpus == 0)) return source.cpus;
  if (text == "gpu" || either) {
    if (source.gpus > 0) return source.gpus;
    throw UsageError("--nproc-per-host gpu: " + source.why_no_gpu, source.hint);
  }
  const auto number = parse_integer(text);
  if (number && *number >= 1 && *number <= 1024) return static_cast<int>(*number);
  throw UsageError(fmt::format("--nproc-per-host {}: must be auto, gpu, cpu or a whole number from 1 to 1024", text));
}

// What no machine decides.
LaunchOptions settled_anywhere(LaunchOptions options, const OptionSet& set) {
  apply_torchrun(options);
  check_hosts(options.job, set);
  signal_of("--stop-signal", options.stop_signal);
  if (!options.save_signal.empty()) signal_of("--save-signal", options.save_signal);
  options.chose_stop_signal = set.chosen("stop-signal");
  return options;
}

}  // namespace

void bind(OptionSet& set, LaunchOptions& options) {
  bind_program(set, options);
  bind_failures(set, options);
  bind_torchrun(set, options);
  bind_hosts(set, options.job);
  bind_elastic(set, options.job);
}

LaunchOptions settled(LaunchOptions options, const OptionSet& set) {
  options = settled_anywhere(std::move(options), set);
  options.job_folder_is_open = !set.chosen("job-dir") && !options.job.is_on_other_machines();
  JobOptions& job = options.job;
  job.slots = options.ranks_per_host.empty() ? 0 : ranks_per_host(options.ranks_per_host, ranks_of_this_machine());
  job.boundary = elastic::Boundary::step;  // these ranks know no epoch
  if (!set.chosen("max-restarts")) options.max_restarts = job.elastic ? kElasticRestarts : 0;
  return options;
}

LaunchOptions settled_for_pods(LaunchOptions options, const OptionSet& set) {
  options = settled_anywhere(std::move(options), set);
  std::string& ranks = options.ranks_per_host;
  if (!ranks.empty()) ranks = std::to_string(ranks_per_host(ranks, ranks_of_pod(options.job.kubernetes)));
  return options;
}

Seconds time_to_end(const LaunchOptions& options) {
  return options.grace + (options.save_signal.empty() ? Seconds(0) : options.save_timeout);
}

external::Program program_of(const LaunchOptions& options) {
  const int stop_signal = signal_of("--stop-signal", options.stop_signal);
  return {.command = options.words,
          .fills_placeholders = options.fills_placeholders,
          .servers = options.servers,
          .horovod = uses(options, kFrameworks[0]),
          .jax = uses(options, kFrameworks[1]),
          .gpus_per_rank = options.gpus_per_rank,
          .environment = options.job.environment,
          .worker_environment = options.worker_environment,
          .server_environment = options.server_environment,
          .stop_signal = stop_signal,
          .interrupt_signal = options.chose_stop_signal ? stop_signal : SIGINT,
          .save_signal = options.save_signal.empty() ? 0 : signal_of("--save-signal", options.save_signal),
          .save_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(options.save_timeout),
          .grace = std::chrono::duration_cast<std::chrono::milliseconds>(options.grace),
          .max_restarts = options.max_restarts.value_or(0),
          .fruitless_limit = options.stop_when == StopWhen::no_progress ? kFruitlessRestarts : 0,
          .job = to_hex(unpredictable_bytes(kNameBytes))};
}

}  // namespace dtrain::config
