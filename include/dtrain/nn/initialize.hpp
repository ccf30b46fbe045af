// First values of parameters and statistics, a pure function of (seed, tensor order).
#pragma once

#include <cstdint>
#include <span>

#include <dtrain/base/enum_names.hpp>
#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

// How all weights begin, by the names of MXNet's image-classification scripts. With fan_in and fan_out, what one output
// reads and one input feeds: xavier is uniform with variance 2 / (fan_in + fan_out) (MXNet's Xavier()), msra Gaussian
// with variance 4 / (1 + 0.25^2) / (fan_in + fan_out) (MSRAPrelu()), normal Gaussian with deviation 0.01 (Normal()),
// uniform between -0.07 and 0.07 (Uniform()); one and zero set them.
enum class Initializer { standard, xavier, msra, normal, uniform, one, zero };
inline constexpr EnumName<Initializer> kInitializerNames[] = {
    {Initializer::standard, "default"}, {Initializer::xavier, "xavier"},   {Initializer::msra, "msra"},
    {Initializer::normal, "normal"},    {Initializer::uniform, "uniform"}, {Initializer::one, "one"},
    {Initializer::zero, "zero"}};

// Weights: Gaussian with variance 2 / fan_in (He et al. 2015; MXNet's Xavier(gaussian, in, 2)), or as InitialWeight
// says; those that whitening makes begin likewise, until whiten() is called. Another initializer than the standard one
// decides for all weights. Biases and betas 0, gammas 1. `parameters` has graph.parameter_count elements.
void initialize_parameters(const Graph& graph, std::uint64_t seed, std::span<float> parameters,
                           Initializer initializer = Initializer::standard);
// Means 0, variances 1.
void initialize_statistics(const Graph& graph, std::span<float> statistics);

}  // namespace dtrain::nn
