// `bench allreduce --gradient-compression`: what each way to compress gradients sends and takes, measured between
// processes of this machine. Its shapes are those of the simulation too.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/json.hpp>
#include <dtrain/base/reporter.hpp>
#include <dtrain/train/gradient_compression.hpp>

#include "config/option_set.hpp"

namespace dtrain::cli {

using Compressions = std::vector<train::GradientCompression>;

// "--gradient-compression K,K,...".
void bind_compressions(config::OptionSet& set, Compressions& kinds);

// So many floats as the layers of a network: convolutions of 3 x 3 from 256 to 512 channels, as far as they go.
std::vector<nn::TensorView> tensors_of(std::int64_t floats);

// "float32", or as compression_text().
std::string gradients_text(const train::GradientCompression& kind);

// A step that is not the last one of a window.
struct CompressedTimes {
  train::GradientCompression kind;           // none: float32
  std::vector<double> seconds, cpu_seconds;  // ascending: of each round, as in bench_allreduce
  double sent = 0;                           // bytes, of the rank that sends most
};
// float32 first.
std::vector<CompressedTimes> measure_compressed(int ranks, const Compressions& kinds, std::int64_t floats, int rounds,
                                                bool by_tcp);

Json compressed_json(const std::vector<CompressedTimes>& all);
void answer_compressed(const std::vector<CompressedTimes>& all, Reporter& reporter);

}  // namespace dtrain::cli
