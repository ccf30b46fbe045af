#include "launch_options.hpp"

#include <fmt/format.h>
#include <string.h>

#include <csignal>
#include <filesystem>

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
                "program and arguments, after --, passed on unchanged, with all blanks and quotes")
      .required = true;
  set.add("--nproc-per-host", options.ranks_per_host, "K|gpu",
          "number of ranks on each host without slots= in -H; gpu for the number of GPUs of this machine");
  set.add("-s,--num-servers", options.servers, "N",
          "number of parameter servers beside the workers. Each runs the same command with a server's DMLC_ROLE and "
          "TF_CONFIG and writes its output to logs/; MXNet's scheduler is started too",
          at_least(0));
  set.add("--template", options.fills_placeholders,
          "replace {rank}, {role}, {task_index}, {ps_hosts} and {worker_hosts} in COMMAND, for TensorFlow 1 scripts. "
          "Servers get the role ps, and no scheduler is started");
  bind_variables(set, "--env-worker", options.worker_environment, "workers");
  bind_variables(set, "--env-server", options.server_environment, "servers and the scheduler");
  set.add("--no-output", options.quiet_ranks, "do not show the output of the ranks; logs/ in the job folder holds it");
}

void bind_failures(OptionSet& set, LaunchOptions& options) {
  set.group("Failures");
  set.add("--max-restarts", options.max_restarts, "R",
          fmt::format("number of times that all ranks start again after a rank fails, before the job fails (default {} "
                      "with --elastic, else 0)",
                      kElasticRestarts),
          at_least(0));
  add_choice(
      set, "--stop-when", options.stop_when, kStopWhenNames,
      "condition for ending the job. failed: a failure after --max-restarts restarts. no-progress: also three failures "
      "in a row without a larger number in $DTRAIN_PROGRESS_FILE, which the program writes; the exit code is then 93");
  set.add("--stop-signal", options.stop_signal, "NAME",
          "signal that asks ranks to end: TERM, INT, USR1, ...; $DTRAIN_DEADLINE_FILE then holds the deadline");
  add_seconds(set, "--grace", options.grace, "seconds after the signal until a rank that still runs is killed",
              between(0, 3600));
}

int signal_of(const std::string& text) {
  if (const std::optional<int> number = signal_number(text)) return *number;
  throw UsageError(fmt::format("--stop-signal {}: not the name of a signal", text),
                   "use TERM, INT, HUP, USR1, USR2, ...");
}

int ranks_per_host(const LaunchOptions& options) {
  if (options.ranks_per_host.empty()) return 0;
  if (options.ranks_per_host == "gpu") {
    const int gpus = nvidia_device_count();
    if (gpus > 0) return gpus;
    throw UsageError("--nproc-per-host gpu: this machine has no NVIDIA GPU (no /dev/nvidia0)",
                     "give a number, or add slots=n to each host of -H");
  }
  const auto number = parse_integer(options.ranks_per_host);
  if (number && *number >= 1 && *number <= 1024) return static_cast<int>(*number);
  throw UsageError(
      fmt::format("--nproc-per-host {}: must be gpu or a whole number from 1 to 1024", options.ranks_per_host));
}

}  // namespace

void bind(OptionSet& set, LaunchOptions& options) {
  bind_program(set, options);
  bind_failures(set, options);
  bind_hosts(set, options.job);
  bind_elastic(set, options.job);
}

LaunchOptions settled(LaunchOptions options, const OptionSet& set) {
  check_hosts(options.job, set);
  signal_of(options.stop_signal);
  JobOptions& job = options.job;
  job.slots = ranks_per_host(options);
  job.boundary = elastic::Boundary::step;  // these ranks know no epoch
  if (!set.chosen("max-restarts")) options.max_restarts = job.elastic ? kElasticRestarts : 0;
  return options;
}

external::Program program_of(const LaunchOptions& options) {
  return {.command = options.words,
          .fills_placeholders = options.fills_placeholders,
          .servers = options.servers,
          .environment = options.job.environment,
          .worker_environment = options.worker_environment,
          .server_environment = options.server_environment,
          .elastic = options.job.elastic,
          .stop_signal = signal_of(options.stop_signal),
          .grace = std::chrono::duration_cast<std::chrono::milliseconds>(options.grace),
          .max_restarts = options.max_restarts.value_or(0),
          .fruitless_limit = options.stop_when == StopWhen::no_progress ? kFruitlessRestarts : 0,
          .job = to_hex(unpredictable_bytes(kNameBytes))};
}

}  // namespace dtrain::config
