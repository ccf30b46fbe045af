#include "training_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::config {
namespace {

// Options that contradict the way in which the batch follows the workers, or that it ignores.
void check_elastic_batch(const JobOptions& options, const OptionSet& set) {
  if (options.is_per_worker()) {
    if (!options.elastic) {
      throw UsageError("--elastic-batch per-worker needs --elastic: without it the number of workers is constant",
                       "add --elastic, or leave out --elastic-batch");
    }
    if (set.chosen("global-batch")) {
      throw UsageError(
          "--global-batch: with --elastic-batch per-worker a step has --batch-size samples for each worker",
          "leave --global-batch out, or use --elastic-batch fixed-global");
    }
    if (set.chosen("logical-shards")) {
      throw UsageError("--logical-shards: with --elastic-batch per-worker each worker has one shard of its own",
                       "leave --logical-shards out, or use --elastic-batch fixed-global");
    }
    return;
  }
  for (const char* name : {"elastic-lr", "elastic-ramp"}) {
    if (!set.chosen(name)) continue;
    throw UsageError(
        fmt::format("--{}: the learning rate follows the batch only with --elastic-batch per-worker", name),
        fmt::format("add --elastic-batch per-worker, or leave --{} out", name));
  }
}

constexpr const char* kJobGroups[] = {kHostGroup, kKubernetesGroup, kElasticGroup};

// Options of these groups that say whether there is a job, that one process uses too, or that other checks judge.
constexpr std::string_view kOfOneProcess[] = {"num-workers",  "launcher",  "elastic",        "cluster",
                                              "job-dir",      "kv-store",  "gradient-dtype", "gradient-compression",
                                              "gc-threshold", "job-queue", "num-servers",    "max-staleness",
                                              "elastic-batch"};

bool is_only_of_jobs(const Option& option) {
  const std::string name = option.same_as.empty() ? option.name() : option.same_as;
  return std::ranges::find(kJobGroups, option.group) != std::end(kJobGroups) &&
         std::ranges::find(kOfOneProcess, name) == std::end(kOfOneProcess);
}

// Whether the command line says how the batch follows the workers. A configuration file may say it for jobs, and means
// no training of one process then.
bool chooses_elastic_batch(const OptionSet& set) {
  return std::ranges::any_of(set.options(), [](const Option& option) {
    return option.source == Source::flag && option.name().starts_with("elastic-");
  });
}

void refuse_without_job(const OptionSet& set) {
  for (const char* name :
       {"detach", "sample-ledger", "reset-hosts", "log-per-worker", "prometheus", "prepare", "prepare-all"}) {
    if (!set.chosen(name)) continue;
    throw UsageError(
        fmt::format("--{}: needs a job with a job folder, and this training runs in a single process", name),
        "give -n 2 or more, -H or --elastic, or leave it out");
  }
}

}  // namespace

void check_training_job(const JobOptions& options, const OptionSet& set) {
  const bool wants_hosts = options.launcher == Launcher::ssh && set.find("launcher")->source == Source::flag;
  const bool is_job = options.is_job() || options.is_for_queue() || wants_hosts;
  if (is_job) {
    check_hosts(options, set);
  } else {
    refuse_without_job(set);
  }
  if (is_job || chooses_elastic_batch(set)) check_elastic_batch(options, set);
}

std::string idle_without_job(const JobOptions& options, const OptionSet& set) {
  if (options.is_job()) return {};
  std::vector<std::string> names;
  for (const Option& option : set.options()) {
    if (option.source == Source::flag && is_only_of_jobs(option)) names.push_back(option.shown_name());
  }
  if (names.empty()) return {};
  return fmt::format("{} {} no effect without a job: add -n with 2 or more, -H or --elastic", join(names, ", "),
                     names.size() == 1 ? "has" : "have");
}

}  // namespace dtrain::config
