// What the rule muon is tried on. For tests only.
#pragma once

#include <dtrain/nn/optimizer.hpp>

#include "common/problem.hpp"

namespace dtrain::testing {

// Weights of every kind of shape: tall, wide, one for each group, a row, a column and a single number, with more rows
// and columns than a tile, a panel and a part have, behind batch norms and not.
Problem matrix_problem();

// Every number another one than the default.
nn::Optimizer muon_of_odd_numbers();

}  // namespace dtrain::testing
