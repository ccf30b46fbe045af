// A graph with everything a step needs: weights, a batch and a key, drawn from a seed. For tests only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/backend/backend.hpp>

namespace dtrain::testing {

struct Problem {
  std::string name;
  nn::Graph graph;
  backend::ModelState state;
  int n = 0;
  std::vector<float> images;  // [n, c, h, w]
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> sample_ids;
  backend::StepKey key;
  std::vector<std::int32_t> partners = {};  // with shares; empty: each sample has one label
  std::vector<float> shares = {};
  std::vector<nn::PictureObjects> objects = {};  // of a detector

  backend::HostBatch batch() const {
    return {.n = n,
            .images = images.data(),
            .labels = labels.data(),
            .sample_ids = sample_ids.data(),
            .partners = shares.empty() ? nullptr : partners.data(),
            .shares = shares.empty() ? nullptr : shares.data(),
            .objects = objects.empty() ? nullptr : objects.data()};
  }
};

// Two labels a sample, some of them equal, with shares of all sizes.
Problem with_two_labels(Problem problem);

// Nothing is left at a special value: gammas near 1, biases, betas and running means near 0, running variances in
// [0.5, 1.5], sample ids far apart.
Problem make_problem(nn::Graph graph, int n, std::uint64_t seed = 1);

// Small graphs: every layer kind with every attribute that changes its arithmetic, in odd sizes, and blocks as the
// networks are made of. Each runs through a convolution first, so that the gradient by the layer's input matters.
std::vector<Problem> layer_problems();
// Those of layers that the cuda backend does not have.
std::vector<Problem> host_problems();
// What detectors have beside them.
std::vector<Problem> detection_problems();
std::vector<Problem> region_problems();

// So that GoogleTest names a case instead of printing its bytes.
void PrintTo(const Problem& problem, std::ostream* out);

}  // namespace dtrain::testing
