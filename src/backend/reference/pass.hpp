// One pass of one shard or evaluation block through the graph, node by node, with every value kept.
#pragma once

#include <span>
#include <vector>

#include <dtrain/backend/backend.hpp>

#include "layers.hpp"
#include "samples.hpp"

namespace dtrain::backend::reference {

// What a pass reads; borrowed, must outlive it.
struct PassInput {
  const nn::Graph& graph;
  std::span<const float> parameters;
  std::span<const float> statistics;  // the running ones
  HostBatch samples;                  // at least one
  bool training = false;
  StepKey key;
};

class Pass {
 public:
  explicit Pass(const PassInput& input);

  // One node; the nodes before it must be done. forward() does all.
  void forward_node(int node);
  void forward();

  // One node; the nodes after it must be done, and forward() before. backward() does all.
  // `gradients` (graph.parameter_count, zero at first) takes the gradients of the sum of the samples' losses.
  void backward_node(int node, std::span<float> gradients);
  void backward(std::span<float> gradients);

  // Mean and biased variance that each batch norm saw, laid out like the running statistics; of a channel of one value
  // the running variance.
  void batch_statistics(std::span<float> statistics) const;
  const Samples& logits() const;
  // Of a detector: its loss after a training pass, or what it found, [n, nn::result_size] numbers.
  StepMetrics detection_metrics() const;
  void detect(std::span<float> results) const;

 private:
  DrawKey draw_key(int node) const;
  const Samples& input_of(int node, int which = 0) const;
  std::vector<const Samples*> inputs_of(int node) const;
  const float* parameter(int node, int which) const;  // nullptr if the node has fewer
  PassInput input_;
  std::vector<Samples> values_;     // per node
  std::vector<Samples> gradients_;  // per node: by the node's output
};

}  // namespace dtrain::backend::reference
