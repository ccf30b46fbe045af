#include "server_options.hpp"

#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "config/gpu/gpu_choice.hpp"
#include "config/option_values.hpp"
#include "conflicts.hpp"

namespace dtrain::config {
namespace {

constexpr std::string_view kOption = "--kv-store dist_async";

// What servers cannot do, whatever the workers do.
std::vector<Conflict> conflicts_with_servers(const TrainOptions& options, backend::DType dtype) {
  const JobOptions& job = options.job;
  return {{!job.is_job(), "one process: it has no other worker to share parameters with",
           "add -n N, -H or --elastic, or leave --kv-store out"},
          {gpu_of_slot(options.compute, 0).has_value(), "GPUs: parameter servers and their workers compute on the CPU",
           "use --device cpu, or --kv-store dist_device_sync"},
          {options.local.any(), "--local-steps: replicas exchange weights, and servers take gradients",
           "leave --local-steps out, or use --kv-store dist_sync"},
          {job.is_per_worker(), "--elastic-batch per-worker: there is no step of all workers whose batch could grow",
           "leave --elastic-batch out: each worker already has --batch-size samples for itself"},
          {dtype == backend::DType::float16, "--dtype float16: each worker would need a loss scale of its own",
           "use --dtype bfloat16 or float32"},
          {job.gradient_dtype != backend::DType::float32, "--gradient-dtype bfloat16: servers take float32",
           "leave --gradient-dtype out"},
          {job.compression.any(), "--gradient-compression: servers take gradients as they are",
           "leave --gradient-compression out"},
          {job.transport != comm::Transport::tcp, "--transport gloo or nccl: workers reach servers by tcp",
           "leave --transport out"}};
}

std::vector<Conflict> conflicts_with_own_batches(const TrainOptions& options, const OptionSet& set) {
  return {{set.chosen("global-batch"), "--global-batch: each worker updates the weights with its own --batch-size",
           "use --batch-size, or --max-staleness 0, with which all workers make a step together"},
          {set.chosen("logical-shards"), "--logical-shards: a batch is of one worker, which computes it in one piece",
           "leave --logical-shards out, or use --max-staleness 0"},
          {options.compute.accumulate > 1, "--accumulate: each worker pushes the gradients of each batch",
           "use a larger --batch-size"}};
}

}  // namespace

void bind_servers(OptionSet& set, JobOptions& options) {
  set.add("-s,--num-servers", options.servers, "N",
          "with --kv-store dist_async, number of parameter servers: threads beside the first N workers, each with a "
          "part of the layers (default one beside each worker). Else accepted for compatibility with MXNet, without "
          "effect",
          at_least(0));
  set.add("--max-staleness", options.max_staleness, "K",
          "with --kv-store dist_async, number of steps that a worker may be ahead of the slowest one, before it waits. "
          "0 makes all workers take each step together, with the bits of dist_sync. Default: no limit, as in MXNet",
          train::kStalenessRange);
}

void settle_servers(TrainOptions& options, backend::DType dtype, const OptionSet& set, int workers) {
  JobOptions& job = options.job;
  if (!job.is_by_servers()) {
    if (!job.max_staleness) return;
    throw UsageError("--max-staleness: without --kv-store dist_async no worker is ahead of another",
                     "add --kv-store dist_async, or leave --max-staleness out");
  }
  refuse(kOption, conflicts_with_servers(options, dtype));
  if (job.is_asynchronous()) refuse(kOption, conflicts_with_own_batches(options, set));
  const int servers = job.servers.value_or(workers);
  refuse(kOption, {{servers == 0, "-s 0: parameters need a server", "leave -s out"},
                   {servers > workers,
                    fmt::format("-s {}: a server lives beside a worker, and the job begins with {}", servers, workers),
                    "use at most as many servers as workers"},
                   {options.optimizer.clip_norm > 0 && servers > 1,
                    fmt::format("--clip-norm and {} servers: none of them knows the norm of all gradients", servers),
                    "use -s 1, or --clip-gradient"}});
  job.servers = servers;
}

std::string servers_line(const JobOptions& options) {
  const int servers = options.servers.value_or(0);
  const std::string kinds = count_text(servers, "parameter server");
  if (options.max_staleness == 0) return kinds + "; all workers take each step together";
  const std::string ahead = options.max_staleness ? fmt::format("at most {} ahead of the slowest one",
                                                                count_text(*options.max_staleness, "step"))
                                                  : "as far ahead of the slowest one as it gets";
  return fmt::format("{}; each worker is {}, so two runs do not end in the same bits", kinds, ahead);
}

}  // namespace dtrain::config
