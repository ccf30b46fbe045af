// What the rule muon is tried on. For tests only.
#pragma once

#include <dtrain/backend/backend.hpp>
#include <dtrain/nn/optimizer.hpp>

#include "problem.hpp"

namespace dtrain::testing {

// Weights of every kind of shape: tall, wide, one for each group, a row, a column and a single number, with more rows
// and columns than a tile, a panel and a part have, behind batch norms and not.
Problem matrix_problem();

// Every number another one than the default.
nn::Optimizer muon_of_odd_numbers();

// What a step of muon with rate 1 and nothing else makes of weights that are zero, the last time it is done.
std::vector<float> muon_step(const backend::Backend& backend, const nn::Graph& graph, backend::DType dtype, int times);

// How far a step of muon in `dtype` is from the judge's in float32: for the matrix for which that is most, the length
// of the difference as a share of the step's own. The step is done three times, since recorded work starts in three
// ways.
double muon_step_error(const backend::Backend& actual, const backend::Backend& judge, const nn::Graph& graph,
                       backend::DType dtype);
// What of it rounding explains. The iteration itself leaves singular values between 0.68 and 1.21 of what they should
// be, and Muon as Jordan computes it in bfloat16 is off by 0.008 to 0.05 on random matrices of such shapes.
double allowed_muon_error(backend::DType dtype);

}  // namespace dtrain::testing
