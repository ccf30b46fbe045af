#include "launch_options.hpp"

#include <fmt/format.h>
#include <string.h>

#include <csignal>
#include <filesystem>

#include <dtrain/base/error.hpp>
#include <dtrain/base/process_end.hpp>
#include <dtrain/base/secret.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::config {
namespace {

// A program that fails so often although machines are exchanged will fail again.
constexpr int kElasticRestarts = 10;
constexpr int kFruitlessRestarts = 3;
constexpr std::size_t kNameBytes = 6;

void bind_variables(OptionSet& set, const char* flag, std::vector<std::string>& field, const char* who) {
  Option& option = set.add_custom(
      flag, "NAME:VALUE", fmt::format("a variable of {} alone; NAME=VALUE means the same; may be given again", who),
      [&field](const std::string& text) { field = variables_from(text); }, [] { return std::string(); });
  option.flag_only = option.repeats = true;
}

void bind_program(OptionSet& set, LaunchOptions& options) {
  set.group("Program");
  set.add_words(
         "COMMAND", options.words,
         "the program and its arguments, after --: they arrive byte for byte, wherever they have blanks or quotes")
      .required = true;
  set.add("--nproc-per-host", options.ranks_per_host, "K|gpu",
          "ranks on each host whose line in -H has no slots=; gpu: as many as this machine has GPUs");
  set.add("-s,--num-servers", options.servers, "N",
          "parameter servers beside the workers: the same command with DMLC_ROLE and TF_CONFIG of a server, and "
          "MXNet's scheduler; each server's output is a file in logs/",
          at_least(0));
  set.add("--template", options.fills_placeholders,
          "replace {rank} {role} {task_index} {ps_hosts} {worker_hosts} in COMMAND, as scripts of TensorFlow 1 want "
          "them; servers are called ps then, and there is no scheduler");
  bind_variables(set, "--env-worker", options.worker_environment, "workers");
  bind_variables(set, "--env-server", options.server_environment, "servers and the scheduler");
  set.add("--no-output", options.quiet_ranks, "show nothing of what the ranks print: logs/ of the job folder has it");
}

void bind_failures(OptionSet& set, LaunchOptions& options) {
  set.group("Failures");
  set.add("--max-restarts", options.max_restarts, "R",
          fmt::format("after a rank fails all start again, so often; then the job fails. Without it {} with --elastic, "
                      "else 0",
                      kElasticRestarts),
          at_least(0));
  set.add_choice("--stop-when", options.stop_when, {"failed", "no-progress"},
                 "no-progress: end with exit code 93 after three failures between which the number in "
                 "$DTRAIN_PROGRESS_FILE, which the program may write, did not grow");
  set.add("--stop-signal", options.stop_signal, "NAME",
          "what ranks get when they are to end: TERM, INT, USR1, ...; $DTRAIN_DEADLINE_FILE then says until when");
  set.add("--grace", options.grace, "S", "a rank that goes on after the signal is killed then", between(0, 3600));
}

int signal_of(const std::string& text) {
  if (const std::optional<int> number = signal_number(text)) return *number;
  throw UsageError(fmt::format("--stop-signal {}: no signal is called so", text), "TERM, INT, HUP, USR1, USR2, ...");
}

int gpus_here() {
  int count = 0;
  while (std::filesystem::exists(fmt::format("/dev/nvidia{}", count))) ++count;
  return count;
}

int ranks_per_host(const LaunchOptions& options) {
  if (options.ranks_per_host.empty()) return 0;
  if (options.ranks_per_host == "gpu") {
    const int gpus = gpus_here();
    if (gpus > 0) return gpus;
    throw UsageError("--nproc-per-host gpu: this machine has no NVIDIA GPU (no /dev/nvidia0)",
                     "give a number, or slots=n behind each host of -H");
  }
  const auto number = parse_integer(options.ranks_per_host);
  if (number && *number >= 1 && *number <= 1024) return static_cast<int>(*number);
  throw UsageError(fmt::format("--nproc-per-host {}: neither a number of 1 or more nor gpu", options.ranks_per_host));
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
  job.boundary = "step";  // these ranks know no epoch
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
          .grace = std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * options.grace)),
          .max_restarts = options.max_restarts.value_or(0),
          .fruitless_limit = options.stop_when == "no-progress" ? kFruitlessRestarts : 0,
          .job = to_hex(unpredictable_bytes(kNameBytes))};
}

}  // namespace dtrain::config
