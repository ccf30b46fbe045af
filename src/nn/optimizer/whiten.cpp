#include <dtrain/nn/whiten.hpp>

#include <algorithm>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>

#include "symmetric_eigen.hpp"

namespace dtrain::nn {
namespace {

constexpr double kSmallestVariance = 5e-4;  // what is added to all: directions of pure noise stay small

const Convolution* whitening_of(const Node& node) {
  const auto* convolution = std::get_if<Convolution>(&node.layer);
  return convolution && convolution->initial == InitialWeight::whitening ? convolution : nullptr;
}

// Where the values of a window lie in an image, from its upper left corner, in the order of a filter's weights.
std::vector<std::size_t> window_offsets(const Convolution& layer, const Shape& image) {
  std::vector<std::size_t> offsets;
  for (int c = 0; c < image.c; ++c) {
    for (int y = 0; y < layer.kernel_h; ++y) {
      for (int x = 0; x < layer.kernel_w; ++x) {
        offsets.push_back(static_cast<std::size_t>((std::int64_t{c} * image.h + y) * image.w + x));
      }
    }
  }
  return offsets;
}

// The mean of p p^T over the windows of all images, one pixel apart and without padding.
std::vector<double> second_moments(const Convolution& layer, const Shape& image, std::span<const float> images) {
  const std::vector<std::size_t> offsets = window_offsets(layer, image);
  const std::size_t size = offsets.size();
  std::vector<double> moments(size * size), window(size);
  std::int64_t windows = 0;
  for (auto rest = images; !rest.empty(); rest = rest.subspan(static_cast<std::size_t>(image.size()))) {
    for (int y = 0; y + layer.kernel_h <= image.h; ++y) {
      for (int x = 0; x + layer.kernel_w <= image.w; ++x, ++windows) {
        const float* const corner = &rest[static_cast<std::size_t>(std::int64_t{y} * image.w + x)];
        for (std::size_t k = 0; k < size; ++k) window[k] = static_cast<double>(corner[offsets[k]]);
        for (std::size_t row = 0; row < size; ++row) {
          for (std::size_t column = 0; column <= row; ++column)
            moments[row * size + column] += window[row] * window[column];
        }
      }
    }
  }
  for (std::size_t row = 0; row < size; ++row) {
    for (std::size_t column = 0; column <= row; ++column) {
      moments[row * size + column] /= static_cast<double>(windows);
      moments[column * size + row] = moments[row * size + column];
    }
  }
  return moments;
}

void write_filters(const SymmetricEigen& eigen, std::span<float> weight) {
  const std::size_t size = eigen.values.size();
  for (std::size_t filter = 0; filter < size; ++filter) {
    const double scale = 1 / portable_sqrt(std::max(0.0, eigen.values[filter]) + kSmallestVariance);
    for (std::size_t k = 0; k < size; ++k) {
      const auto value = static_cast<float>(scale * eigen.vectors[filter * size + k]);
      weight[filter * size + k] = value;
      weight[(size + filter) * size + k] = -value;
    }
  }
}

}  // namespace

bool wants_images(const Graph& graph) { return std::ranges::any_of(graph.nodes, whitening_of); }

void whiten(const Graph& graph, std::span<const float> images, std::span<float> parameters) {
  DTRAIN_CHECK(!images.empty() && images.size() % static_cast<std::size_t>(graph.input().size()) == 0,
               "whole images of the graph's shape");
  for (const Node& node : graph.nodes) {
    const Convolution* const layer = whitening_of(node);
    if (!layer) continue;
    const std::vector<double> moments = second_moments(*layer, graph.input(), images);
    const TensorView& view = graph.parameters[static_cast<std::size_t>(node.parameters[0])];
    write_filters(symmetric_eigen(moments),
                  parameters.subspan(static_cast<std::size_t>(view.offset), static_cast<std::size_t>(view.size)));
  }
}

}  // namespace dtrain::nn
