// A checkpoint of a network with one of each kind of tensor, its numbers drawn from a seed.
#pragma once

#include <dtrain/base/random.hpp>
#include <dtrain/train/checkpoint.hpp>

namespace dtrain::train {

inline std::vector<float> random_floats(std::int64_t count, std::uint32_t which) {
  RandomStream random(1, RandomUse::drawing, which, 0);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = random.uniform(0.1f, 1.0f);
  return values;
}

inline nn::Graph small_graph() {
  nn::GraphBuilder builder("small", {1, 4, 4});
  int x = builder.add("conv0", nn::Convolution{.out = 2, .kernel_h = 3, .kernel_w = 3}, {0});
  x = builder.add("bn0", nn::BatchNorm{}, {x});
  return builder.finish(builder.add("fc1", nn::Dense{3}, {x}));
}

inline Checkpoint small_checkpoint(std::uint32_t epoch = 1, std::uint32_t numbers = 0) {
  Checkpoint checkpoint;
  checkpoint.graph = small_graph();
  checkpoint.state.parameters = random_floats(checkpoint.graph.parameter_count, numbers);
  checkpoint.state.statistics = random_floats(checkpoint.graph.statistic_count, numbers + 100);
  checkpoint.state.optimizer = random_floats(checkpoint.graph.parameter_count, numbers + 200);
  checkpoint.state.updates = 7;
  checkpoint.cursor = {epoch, 0, epoch * 1000u};
  checkpoint.job.seed = 0xfedcba9876543210u;
  checkpoint.job.samples = 1000;
  checkpoint.job.global_batch = 128;
  checkpoint.job.logical_shards = 4;
  checkpoint.job.preprocessing = Json::object({{"mean", Json::array({123.68})}});
  return checkpoint;
}

}  // namespace dtrain::train
