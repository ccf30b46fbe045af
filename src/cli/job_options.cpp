#include "job_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include <dtrain/base/error.hpp>

#include "option_values.hpp"

namespace dtrain::cli {
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
  set.add("-H,--hostfile", options.hostfile, "file with one host a line: name, or user@host:port slots=n")
      .legacy_variable = "DEEPLEARNING_WORKERS_PATH";
  set.add_choice("--launcher", options.launcher, {"auto", "local", "ssh", "mpi", "slurm", "sge", "yarn"},
                 "how workers are started: local, as processes here, is what this version has; auto: ssh with -H, "
                 "else local");
  set.add("-s,--num-servers", options.servers, "N", "not needed: gradients are added by the workers", at_least(0));
}

void bind_sums(OptionSet& set, JobOptions& options) {
  set.add_custom(
      "--kv-store", "local|device|dist_sync|dist_device_sync",
      "MXNet's name for where gradients are added. All give the same bits: shards of one worker are added in its "
      "memory (local, device), those of several workers between them, without servers (dist_sync, dist_device_sync)",
      [&options](const std::string& text) { options.kv_store = known_store(text); },
      [&options] { return options.kv_store; });
  set.add_choice("--transport", options.transport, {"tcp", "gloo"},
                 "what carries gradients: tcp authenticates every connection; gloo is there to compare");
  set.add_choice("--gradient-dtype", options.gradient_dtype, {"float32", "bfloat16"},
                 "how gradients are added and sent; bfloat16 halves the traffic and gives other bits");
}

void bind_job_files(OptionSet& set, JobOptions& options) {
  bind_job_folder(set, options.folder);
  set.add("--reset-hosts", options.reset_hosts, "make the job folder's host_worker anew from -H");
  set.add("--detach", options.detach, "return once the job runs; it outlives the terminal");
  set.add("--sample-ledger", options.sample_ledger, "write which samples every step consumed to ledger/");
  set.add("--prometheus", options.prometheus, "keep metrics.prom in the job folder up to date, as Prometheus reads it");
  set.add("--log-per-worker", options.log_per_worker, "show what every worker says too, with its host before it");
}

void bind_waits(OptionSet& set, JobOptions& options) {
  set.add("--heartbeat-timeout", options.heartbeat_timeout, "S", "a worker that is silent for so long is evicted",
          more_than(0));
  set.add("--comm-timeout", options.comm_timeout, "S", "longest wait for other workers inside a step", more_than(0));
  set.add("--hold-timeout", options.hold_timeout, "S",
          "with fewer than --min-workers: wait so long, then save and stop; 0: for ever", at_least(0));
}

}  // namespace

void bind_job_folder(OptionSet& set, Path& folder) {
  set.add("--job-dir", folder, "where the job keeps host_worker, events, logs and ledger").legacy_variable =
      "EFS_MOUNT";
}

void bind_hosts(OptionSet& set, JobOptions& options) {
  set.group("Hosts");
  bind_start(set, options);
  bind_sums(set, options);
  bind_job_files(set, options);
  bind_waits(set, options);
}

void bind_elastic(OptionSet& set, JobOptions& options) {
  set.group("Workers that come and go");
  set.add("--elastic", options.elastic, "edit host_worker, or say `dtrain hosts`, and workers join or leave");
  set.add_custom(
      "--elastic-training-enabled", "True|False", "MXNet's name of --elastic",
      [&options](const std::string& text) { options.elastic = true_or_false(text); }, [] { return std::string(); });
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
  set.add("--min-workers", options.min_workers, "N", "with fewer the job holds its state in memory and waits",
          at_least(1));
  set.add("--max-workers", options.max_workers, "N", "more are spares; 0: twice the hosts of the start, at least 8",
          at_least(0));
  set.add("--allow-mass-remove", options.allow_mass_remove,
          "an edit of host_worker may remove more than half of the hosts");
}

void check_job(const JobOptions& options, const OptionSet& set) {
  const bool by_ssh = options.launcher == "ssh" || (options.launcher == "auto" && options.hostfile);
  if (by_ssh || (options.launcher != "auto" && options.launcher != "local")) {
    throw UsageError(fmt::format("--launcher {}: this dtrain starts workers on this machine only",
                                 by_ssh ? "ssh" : options.launcher),
                     "--launcher local makes every line of -H a worker process here");
  }
  if (options.is_job()) {
    if (!options.elastic && options.is_per_worker()) {
      throw UsageError("--elastic-batch per-worker: the number of workers changes only with --elastic",
                       "add --elastic, or leave it out");
    }
    if (options.max_workers > 0 && options.max_workers < options.min_workers) {
      throw UsageError(
          fmt::format("--max-workers {}: less than --min-workers {}", options.max_workers, options.min_workers));
    }
    return;
  }
  for (const char* name : {"detach", "sample-ledger", "reset-hosts", "log-per-worker", "prometheus"}) {
    if (!set.chosen(name)) continue;
    throw UsageError(fmt::format("--{}: one process that trains alone has no job folder", name),
                     "give -n, -H or --elastic too, or leave it out");
  }
}

}  // namespace dtrain::cli
