// Everything a backend computes for a problem, and the comparison of two backends. For tests only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>

#include "problem.hpp"

namespace dtrain::testing {

// Keeps each shard's contribution. Safe from any thread, as the contract of ContributionSink asks.
class CollectingSink final : public backend::ContributionSink {
 public:
  CollectingSink(const nn::Graph& graph, std::span<const backend::ShardRange> shards);
  std::span<float> buffer(const backend::ShardRange& shard) override;
  void ready(const backend::ShardRange& shard, std::int64_t first, std::int64_t size, bool last) override;

  // The shards' contributions added from shard 0 on. Throws std::logic_error where a float of a shard was not declared
  // ready exactly once.
  std::vector<float> sum() const;
  const std::vector<float>& of(int shard) const { return contributions_[static_cast<std::size_t>(shard)]; }

 private:
  std::vector<std::vector<float>> contributions_;  // by ShardRange::index, made before any thread starts
  std::vector<std::vector<int>> declared_;         // per float: how often it was ready
  std::vector<int> finished_;
};

// Samples split over `shards` as the steps of a job are: shard i holds [i*n/shards, (i+1)*n/shards).
std::vector<backend::ShardRange> split_samples(int n, int shards);

struct TraceOptions {
  int shards = 1;
  int lanes = 1;
  int threads_per_lane = 1;
  backend::DType dtype = backend::DType::float32;
  int top_k = 3;
  backend::Update update{{}, 0.05f};
  int updates = 2;
};

struct Trace {
  std::vector<float> contribution;  // of the first step: see ContributionLayout
  std::vector<float> logits;        // [n, nn::result_size], by evaluate() before any update
  backend::StepMetrics evaluated;   // likewise
  backend::ModelState after;        // after all updates
};

// evaluate(), then `updates` times enqueue() and apply().
Trace trace_steps(const backend::Backend& backend, const Problem& problem, const TraceOptions& options = {});

// max |a - b| / max(max |b|, floor); 0 for equal buffers, also where all is zero.
double relative_difference(std::span<const float> actual, std::span<const float> expected, double floor = 1e-30);

// Largest relative_difference() allowed per kind of result. A gradient that vanishes but for rounding (a bias before a
// batch norm) is measured against a thousandth of the network's largest gradient.
struct Tolerance {
  double loss = 1e-5;
  double gradients = 1e-4;
  double statistics = 1e-4;
  double logits = 1e-4;
  double parameters = 1e-4;
};

// Empty when the two agree tensor by tensor, else one line for each tensor that does not.
std::string compare_backends(const backend::Backend& actual, const backend::Backend& expected, const Problem& problem,
                             const TraceOptions& options = {}, const Tolerance& tolerance = {});

}  // namespace dtrain::testing
