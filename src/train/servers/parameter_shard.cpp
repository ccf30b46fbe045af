#include "parameter_shard.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::train {
namespace {

std::unique_ptr<backend::Executable> compile_updates(const ShardLayout& layout, const ParameterServers& servers,
                                                     const nn::Optimizer& rule) {
  backend::CompileOptions options;
  options.lanes = 1;
  options.threads_per_lane = servers.threads;
  options.max_samples = 1;
  options.training = false;
  options.optimizer = rule.kind;
  options.average = rule.average > 0;
  options.layer_decay = rule.layer_decay != 1;
  return servers.backend->compile(layout.graph, options);
}

}  // namespace

ParameterShard::ParameterShard(const ShardLayout& layout, const ParameterServers& servers, const nn::Optimizer& rule,
                               int leaves, backend::ModelState state)
    : layout_(layout),
      rule_(rule),
      leaves_(leaves),
      executable_(compile_updates(layout, servers, rule)),
      contribution_(static_cast<std::size_t>(backend::ContributionLayout(layout.graph).size())) {
  executable_->write_state(std::move(state));
}

ParameterShard::Gathering& ParameterShard::gathering(std::uint64_t number) {
  Gathering& gathering = gatherings_[number];
  if (!gathering.alone) {
    gathering.alone = comm::make_single();
    gathering.reduction =
        gathering.alone->begin_reduction({.shards = leaves_, .size = layout_.contribution_size()}, {});
    gathering.missing_leaves = leaves_;
  }
  return gathering;
}

std::optional<backend::StepMetrics> ParameterShard::take(const Part& part, std::span<const float> values) {
  const std::int64_t size = layout_.contribution_size();
  if (part.leaf < 0 || part.leaf >= leaves_ || part.first < 0 || part.first > size - std::ssize(values))
    throw DataError("a worker pushed gradients that are not of this shard");
  Gathering& all = gathering(part.number);
  const auto [leaf, is_new] = all.leaves.try_emplace(part.leaf);
  if (is_new) {
    leaf->second = all.reduction->leaf(part.leaf);
    all.missing[part.leaf] = size;
  }
  std::int64_t& missing = all.missing[part.leaf];
  if (missing < std::ssize(values)) throw DataError("a worker pushed gradients twice");
  std::ranges::copy(values, leaf->second.begin() + part.first);
  missing -= std::ssize(values);
  if (missing > 0) return std::nullopt;
  all.reduction->ready(part.leaf, 0, size);
  if (--all.missing_leaves > 0) return std::nullopt;
  sum_ = all.reduction->finish().sum;
  gatherings_.erase(part.number);
  return apply(sum_, part.learning_rate);
}

backend::StepMetrics ParameterShard::apply(std::span<const float> sum, float learning_rate) {
  if (keeps_previous_) previous_ = floats();
  layout_.unpack(sum, contribution_);
  const backend::StepMetrics metrics = executable_->set_sum(std::span<const float>(contribution_));
  executable_->apply({rule_, learning_rate});
  ++version_;
  return metrics;
}

}  // namespace dtrain::train
