#include "local_steps_options.hpp"

#include <fmt/format.h>

#include <limits>

#include <dtrain/base/error.hpp>

#include "config/option_values.hpp"
#include "conflicts.hpp"

namespace dtrain::config {
namespace {

using train::OuterOptimizer;

constexpr const char* kOuterOptions[] = {"outer-optimizer", "outer-lr", "outer-mom"};

// Names the first option of the outer optimizer that has no effect.
void check_outer(const train::LocalSteps& local, const OptionSet& set) {
  for (const char* name : kOuterOptions) {
    if (local.any() || !set.chosen(name)) continue;
    throw UsageError(fmt::format("--{}: without --local-steps there is no outer optimizer", name),
                     fmt::format("add --local-steps H with H above 1, or leave --{} out", name));
  }
  const bool has_rate = local.outer != OuterOptimizer::average, has_momentum = local.outer == OuterOptimizer::nesterov;
  for (const auto& [name, is_used] : {std::pair("outer-lr", has_rate), std::pair("outer-mom", has_momentum)}) {
    if (is_used || !set.chosen(name)) continue;
    throw UsageError(fmt::format("--{}: --outer-optimizer {} does not use it", name,
                                 enum_name(train::kOuterOptimizerNames, local.outer)),
                     fmt::format("leave it out, or use --outer-optimizer nesterov"));
  }
}

}  // namespace

void bind_local_steps(OptionSet& set, train::LocalSteps& local) {
  set.group("Local steps");
  set.add(
      "--local-steps", local.steps, "H",
      "let each logical shard be a replica with weights of its own, which takes H steps before the replicas "
      "exchange what they learned: for slow links. One replica per worker, with --elastic per --max-workers, unless "
      "--logical-shards says how many. A step of --checkpoint-every, --monitor and --elastic-boundary is then such "
      "an exchange. 1 exchanges gradients at each step",
      between(1, train::kMostLocalSteps));
  add_choice(set, "--outer-optimizer", local.outer, train::kOuterOptimizerNames,
             "with --local-steps, what an exchange does with the mean movement of the replicas: a step of nesterov (as "
             "DiLoCo) or of sgd, or average, which sets the weights to the mean of the replicas (as Local SGD)");
  set.add("--outer-lr", local.rate, "RATE", "learning rate of --outer-optimizer nesterov and sgd",
          train::kOuterRateRange);
  set.add("--outer-mom", local.momentum, "SHARE", "momentum of --outer-optimizer nesterov", train::kOuterMomentumRange);
}

void check_local_steps(const TrainOptions& options, backend::DType dtype, const OptionSet& set) {
  const train::LocalSteps& local = options.local;
  check_outer(local, set);
  if (!local.any()) return;
  refuse(fmt::format("--local-steps {}", local.steps),
         {{options.job.is_per_worker(), "--elastic-batch per-worker: the number of replicas is fixed",
           "leave --elastic-batch out"},
          {options.compute.accumulate > 1, "--accumulate: each replica updates its weights after each of its batches",
           "leave --accumulate out"},
          {options.optimizer.average > 0, "--ema: an average over steps is kept of one model, not of replicas",
           "leave --ema out; an exchange already averages the replicas"},
          {dtype == backend::DType::float16, "--dtype float16: each replica would need a loss scale of its own",
           "use --dtype bfloat16 or float32"},
          {options.job.transport == comm::Transport::nccl && set.chosen("transport"),
           "--transport nccl: what replicas learned is added up on the host", "use --transport tcp"},
          {std::int64_t{options.compute.samples_per_step()} * local.steps > std::numeric_limits<int>::max(),
           "so large a batch: the steps between two exchanges have more than 2147483647 samples",
           "use a smaller H or batch"}});
}

std::string local_steps_line(const train::LocalSteps& local, int replicas) {
  std::string line = fmt::format("{} {} {} steps between two exchanges; outer optimizer {}", replicas,
                                 replicas == 1 ? "replica takes" : "replicas take", local.steps,
                                 enum_name(train::kOuterOptimizerNames, local.outer));
  if (local.outer != OuterOptimizer::average) line += fmt::format(", rate {:g}", local.rate);
  if (local.outer == OuterOptimizer::nesterov) line += fmt::format(", momentum {:g}", local.momentum);
  return line;
}

}  // namespace dtrain::config
