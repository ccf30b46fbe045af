// First weights that are made from images: a convolution whose outputs are the directions in which small windows of
// the images vary, each scaled so that all vary alike.
#pragma once

#include <span>

#include <dtrain/nn/graph.hpp>

namespace dtrain::nn {

// Whether some convolution begins as InitialWeight::whitening.
bool wants_images(const Graph& graph);

// Sets the weights of those convolutions, a pure function of the images: eigenvectors of the mean of p p^T over all
// windows p of all images, those of the largest eigenvalues first, each divided by sqrt(eigenvalue + 5e-4); then their
// negatives. `images`: [n, c, h, w] with n >= 1, normalised, as the network reads them; `parameters` has
// graph.parameter_count elements.
void whiten(const Graph& graph, std::span<const float> images, std::span<float> parameters);

}  // namespace dtrain::nn
