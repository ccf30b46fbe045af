// Compares two graphs, layer by layer and tensor by tensor.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include <dtrain/nn/graph.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>

namespace dtrain::nn {

// What build_network() takes of a classifier only.
inline float label_smoothing_for(const std::string& network) { return is_detector(network) ? 0.0f : 0.1f; }

// A picture of a size that the network takes: networks without torchvision's names take small ones.
inline Shape images_for(const std::string& network) {
  if (is_detector(network)) return {3, 96, 64};
  const int size = std::ranges::count(torch_network_names(), network) == 0 ? 32 : pretrained_images(network).size;
  return {3, size, size};
}

inline void expect_same(const std::vector<TensorView>& a, const std::vector<TensorView>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].name, b[i].name);
    EXPECT_EQ(a[i].shape, b[i].shape) << a[i].name;
    EXPECT_EQ(a[i].role, b[i].role) << a[i].name;
    EXPECT_EQ(a[i].offset, b[i].offset) << a[i].name;
  }
}

inline void expect_same(const Graph& a, const Graph& b) {
  EXPECT_EQ(graph_to_json(a)["nodes"].dump(0), graph_to_json(b)["nodes"].dump(0));  // names, attributes, edges, shapes
  expect_same(a.parameters, b.parameters);
  expect_same(a.statistics, b.statistics);
  EXPECT_EQ(a.parameter_count, b.parameter_count);
  EXPECT_EQ(a.statistic_count, b.statistic_count);
}

}  // namespace dtrain::nn
