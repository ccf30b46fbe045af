#include "trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace dtrain::testing {
namespace {

using backend::ContributionLayout;
using backend::ShardRange;

std::span<const float> part(std::span<const float> buffer, std::int64_t first, std::int64_t size) {
  return buffer.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(size));
}

// Collects a line for each result that differs by more than allowed.
class Differences {
 public:
  void check(const std::string& what, std::span<const float> actual, std::span<const float> expected, double allowed,
             double floor = 1e-30) {
    const double difference = relative_difference(actual, expected, floor);
    if (!(difference <= allowed)) lines_ += fmt::format("{}: {:.3g} > {:.3g}\n", what, difference, allowed);
  }
  void check_views(const char* kind, std::span<const nn::TensorView> views, std::span<const float> actual,
                   std::span<const float> expected, double allowed, double floor = 1e-30) {
    for (const nn::TensorView& view : views) {
      check(fmt::format("{} of {}", kind, view.name), part(actual, view.offset, view.size),
            part(expected, view.offset, view.size), allowed, floor);
    }
  }
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_;
};

double largest(std::span<const float> values) {
  double result = 0;
  for (const float value : values) result = std::max(result, std::abs(static_cast<double>(value)));
  return result;
}

}  // namespace

CollectingSink::CollectingSink(const nn::Graph& graph, std::span<const ShardRange> shards) {
  const auto size = static_cast<std::size_t>(ContributionLayout(graph).size());
  contributions_.assign(shards.size(), std::vector<float>(size, std::nanf("")));
  declared_.assign(shards.size(), std::vector<int>(size, 0));
  finished_.assign(shards.size(), 0);
}

std::span<float> CollectingSink::buffer(const ShardRange& shard) {
  return contributions_.at(static_cast<std::size_t>(shard.index));
}

void CollectingSink::ready(const ShardRange& shard, std::int64_t first, std::int64_t size, bool last) {
  const auto index = static_cast<std::size_t>(shard.index);
  for (std::int64_t k = first; k < first + size; ++k) ++declared_[index].at(static_cast<std::size_t>(k));
  finished_[index] += last;
}

std::vector<float> CollectingSink::sum() const {
  std::vector<float> sum(contributions_.at(0).size(), 0.0f);
  for (std::size_t shard = 0; shard < contributions_.size(); ++shard) {
    if (finished_[shard] != 1)
      throw std::logic_error(fmt::format("shard {} marked {} last parts", shard, finished_[shard]));
    if (std::ranges::any_of(declared_[shard], [](int times) { return times != 1; })) {
      throw std::logic_error(fmt::format("shard {} did not declare each float ready once", shard));
    }
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += contributions_[shard][k];
  }
  return sum;
}

std::vector<ShardRange> split_samples(int n, int shards) {
  std::vector<ShardRange> ranges;
  for (int i = 0; i < shards; ++i) {
    const int first = i * n / shards;
    ranges.push_back({i, first, (i + 1) * n / shards - first});
  }
  return ranges;
}

Trace trace_steps(const backend::Backend& backend, const Problem& problem, const TraceOptions& options) {
  const backend::CompileOptions compile{.dtype = options.dtype,
                                        .lanes = options.lanes,
                                        .threads_per_lane = options.threads_per_lane,
                                        .max_samples = problem.n,
                                        .top_k = options.top_k};
  const auto executable = backend.compile(problem.graph, compile);
  executable->write_state(problem.state);
  Trace trace;
  trace.logits.resize(static_cast<std::size_t>(problem.n * nn::result_size(problem.graph)));
  trace.evaluated = executable->evaluate(problem.batch(), trace.logits);
  const std::vector<ShardRange> shards = split_samples(problem.n, options.shards);
  for (int update = 0; update < options.updates; ++update) {
    CollectingSink sink(problem.graph, shards);
    executable->enqueue(problem.batch(), shards, problem.key, sink);
    executable->synchronize();
    const std::vector<float> contribution = sink.sum();
    if (update == 0) trace.contribution = contribution;
    executable->apply(contribution, options.update);
  }
  trace.after = executable->read_state();
  return trace;
}

double relative_difference(std::span<const float> actual, std::span<const float> expected, double floor) {
  if (actual.size() != expected.size()) return HUGE_VAL;
  double difference = 0;
  for (std::size_t k = 0; k < actual.size(); ++k) {
    const double here = std::abs(static_cast<double>(actual[k]) - expected[k]);
    if (std::isnan(here)) return HUGE_VAL;
    difference = std::max(difference, here);
  }
  return difference == 0 ? 0 : difference / std::max(largest(expected), floor);
}

std::string compare_backends(const backend::Backend& actual, const backend::Backend& expected, const Problem& problem,
                             const TraceOptions& options, const Tolerance& tolerance) {
  TraceOptions plain = options;  // what the judge computes with: the same shards, no lanes, float32
  plain.lanes = plain.threads_per_lane = 1;
  plain.dtype = backend::DType::float32;
  const Trace a = trace_steps(actual, problem, options);
  const Trace b = trace_steps(expected, problem, plain);
  const nn::Graph& graph = problem.graph;
  const ContributionLayout layout(graph);
  Differences differences;
  const auto metrics = [&](const Trace& trace) {
    return part(trace.contribution, layout.gradients + layout.statistics, layout.metrics);
  };
  differences.check("logits", a.logits, b.logits, tolerance.logits);
  differences.check("loss", metrics(a).first(1), metrics(b).first(1), tolerance.loss);
  differences.check("count", metrics(a).subspan(3, 1), metrics(b).subspan(3, 1), 0);
  differences.check("parts of the loss", metrics(a).subspan(layout.counts), metrics(b).subspan(layout.counts),
                    tolerance.loss);
  if (!problem.shares.empty()) differences.check("correct", metrics(a).subspan(1, 2), metrics(b).subspan(1, 2), 1e-6);
  differences.check_views("gradient", graph.parameters, a.contribution, b.contribution, tolerance.gradients,
                          1e-3 * largest(part(b.contribution, 0, layout.gradients)));
  differences.check_views("batch statistic", graph.statistics,
                          part(a.contribution, layout.gradients, layout.statistics),
                          part(b.contribution, layout.gradients, layout.statistics), tolerance.statistics);
  differences.check_views("updated", graph.parameters, a.after.parameters, b.after.parameters, tolerance.parameters);
  differences.check_views("updated", graph.statistics, a.after.statistics, b.after.statistics, tolerance.statistics);
  differences.check("optimizer state", a.after.optimizer, b.after.optimizer, tolerance.gradients);
  differences.check("average", a.after.average, b.after.average, tolerance.parameters);
  if (tolerance.logits < 1e-3 && a.evaluated.correct != b.evaluated.correct) {
    return differences.lines() + fmt::format("correct: {} != {}\n", a.evaluated.correct, b.evaluated.correct);
  }
  return differences.lines();
}

}  // namespace dtrain::testing
