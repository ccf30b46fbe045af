// First values of parameters and statistics, a pure function of (seed, tensor order).
#pragma once

#include <cstdint>
#include <span>

#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

// Weights: Gaussian with variance 2 / fan_in (He et al. 2015; MXNet's Xavier(gaussian, in, 2)), or as InitialWeight
// says; those that whitening makes begin likewise, until whiten() is called. Biases and betas 0, gammas 1. `parameters`
// has graph.parameter_count elements.
void initialize_parameters(const Graph& graph, std::uint64_t seed, std::span<float> parameters);
// Means 0, variances 1.
void initialize_statistics(const Graph& graph, std::span<float> statistics);

}  // namespace dtrain::nn
