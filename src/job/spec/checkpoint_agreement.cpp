#include "checkpoint_agreement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/loader.hpp>
#include <dtrain/train/run_ends.hpp>

#include "config/gpu/gpu_choice.hpp"
#include "config/resizing/aspect_groups.hpp"
#include "data_facts.hpp"

namespace dtrain::job {
namespace {

template <typename Value>
void agree(const config::OptionSet& set, const char* name, Value& mine, const Value& saved) {
  if (set.chosen(name) && mine != saved) {
    throw UsageError(fmt::format("--{} {}: the checkpoint was trained with {}", name, mine, saved),
                     fmt::format("leave --{} out to resume, or use another --model-prefix", name));
  }
  mine = saved;
}

void agree_on_local_steps(const train::LocalSteps& saved, const config::OptionSet& set, train::LocalSteps& mine) {
  agree(set, "local-steps", mine.steps, saved.steps);
  if (!saved.any()) return;
  std::string outer = enum_name(train::kOuterOptimizerNames, mine.outer);
  agree(set, "outer-optimizer", outer, enum_name(train::kOuterOptimizerNames, saved.outer));
  mine.outer = saved.outer;
  if (!set.chosen("outer-lr")) mine.rate = saved.rate;
  if (!set.chosen("outer-mom")) mine.momentum = saved.momentum;
}

// They order the samples of an epoch.
void agree_on_groups(const std::vector<data::ScaledSize>& saved, const config::OptionSet& set,
                     std::vector<data::ScaledSize>& mine) {
  std::string text = config::aspect_groups_text(mine);
  agree(set, "aspect-groups", text, saved.empty() ? "none" : config::aspect_groups_text(saved));
  mine = saved;
}

// At the end of an epoch the user may choose another order.
void agree_on_order(const train::Checkpoint& start, const config::OptionSet& set, config::DataOptions& mine) {
  const std::optional<train::SampleOrder>& saved = start.job.order;
  if (!saved) return;
  const bool is_inside = start.cursor.position > 0;
  const auto take = [&](const char* name, auto& value, const auto& of_checkpoint) {
    if (is_inside || !set.chosen(name)) agree(set, name, value, of_checkpoint);
  };
  take("shuffle-block", mine.shuffle_block, saved->shuffle_block);
  take("balanced-sampler", mine.balanced_sampler, saved->balanced);
  take("repeated-augment", mine.repeated_augment, saved->repeats);
}

// The weights know no other pixels than those of the first run.
void agree_on_pixels(const Json& saved, const config::OptionSet& set, const config::DataOptions& mine) {
  config::DataOptions first = mine;
  config::take_preprocessing(saved, {}, first);
  const auto agree_on_channels = [&](const char* name, const std::array<float, 3>& chosen, const auto& before) {
    std::string text = fmt::format("{}", fmt::join(chosen, ","));
    agree(set, name, text, fmt::format("{}", fmt::join(before, ",")));
  };
  agree_on_channels("rgb-mean", mine.augment.mean, first.augment.mean);
  agree_on_channels("rgb-std", mine.augment.std, first.augment.std);
  int resize = mine.augment.resize;
  agree(set, "resize", resize, first.augment.resize);
}

// Whether two options give the samples of a step.
bool accumulates_batches(const config::ComputeOptions& compute) {
  return compute.global_batch == 0 && compute.accumulate > 1;
}

// The options that give the samples of a step, as the user wrote them.
std::string batch_words(const config::ComputeOptions& compute) {
  if (compute.global_batch > 0) return fmt::format("--global-batch {}", compute.global_batch);
  const std::string batch = fmt::format("--batch-size {}", compute.batch_size);
  return accumulates_batches(compute) ? fmt::format("{} and --accumulate {}", batch, compute.accumulate) : batch;
}

// Where the batch followed the workers, its size says nothing about this run, and the rates stay those of the first.
void agree_on_batch(const train::JobFacts& saved, const config::OptionSet& set, const config::JobOptions& job,
                    config::ComputeOptions& mine) {
  const int batch = saved.rate_batch > 0 ? saved.rate_batch : saved.global_batch;
  const bool chosen = set.chosen("global-batch") || (set.chosen("batch-size") && !job.is_job());
  if (chosen && mine.samples_per_step() != batch) {
    throw UsageError(
        fmt::format("{}: the checkpoint was trained with {} a step", batch_words(mine), count_text(batch, "sample")),
        fmt::format("leave {} out to resume, or use another --model-prefix",
                    accumulates_batches(mine) ? "them" : "it"));
  }
  if (set.chosen("accumulate") && mine.accumulate > saved.logical_shards) {
    throw UsageError(fmt::format("--accumulate {}: the checkpoint was trained with {} a step, and each of the {} "
                                 "batches needs at least one",
                                 mine.accumulate, count_text(saved.logical_shards, "logical shard"), mine.accumulate),
                     "leave --accumulate out to resume, or use another --model-prefix");
  }
  if (job.has_own_batches() && saved.worker_batch > 0 && !set.chosen("batch-size")) {
    mine.batch_size = saved.worker_batch * config::workers_of_host(mine);
  }
  mine.global_batch = batch;
}

}  // namespace

void agree_with_checkpoint(const train::Checkpoint& start, const config::OptionSet& set,
                           config::TrainOptions& options) {
  if (!options.resume) return;
  agree(set, "seed", options.compute.seed, start.job.seed);
  agree(set, "logical-shards", options.compute.logical_shards, start.job.logical_shards);
  agree_on_local_steps(start.job.local, set, options.local);
  agree_on_groups(config::aspect_groups_of(start.job.preprocessing), set, options.data.aspect_groups);
  agree_on_order(start, set, options.data);
  agree_on_pixels(start.job.preprocessing, set, options.data);
  agree_on_batch(start.job, set, options.job, options.compute);
  // A part of what was trained.
  if (!set.chosen("ema")) options.optimizer.average = start.job.optimizer.average;
  if (!set.chosen("ema-warmup")) options.optimizer.average_warms_up = start.job.optimizer.average_warms_up;
}

std::string unheeded_batch(const config::OptionSet& set, const config::TrainOptions& options) {
  const bool heeds = options.job.has_own_batches() || set.chosen("global-batch");
  if (!options.resume || !options.job.is_job() || heeds || !set.chosen("batch-size")) return {};
  config::ComputeOptions asked = options.compute;
  asked.global_batch = 0;
  const int kept = options.compute.samples_per_step();
  if (asked.samples_per_step() == kept) return {};
  return fmt::format("A step keeps the checkpoint's {}: {} would make it {}", count_text(kept, "sample"),
                     batch_words(asked), asked.samples_per_step());
}

void agree_on_records(const train::Checkpoint& start, const Path& records, std::int64_t num_examples) {
  const std::optional<std::uint64_t> count = count_records(records);
  if (!count) return;
  const std::uint64_t samples = data::samples_of_epoch(*count, num_examples);
  train::starting_cursor(start, samples);
  train::require_record_order(
      start, [&] { return data::order_of_records(data::RecordSet(data::find_records(records.string())), samples); });
}

void agree_on_validation(train::Checkpoint& start, const Path& records, int views, const data::RemoteOptions& remote) {
  if (start.best.accuracy < 0 || !start.best.data || !count_records(records)) return;  // the trainer compares, too
  const data::RecordSet set(data::find_records(records.string(), remote.store), remote);
  const train::ValidationSet here{
      .samples = set.size(), .records = data::order_of_records(set, set.size()), .views = views};
  start.best = train::starting_best(start, &here, true);
}

}  // namespace dtrain::job
