// Eigenvalues and eigenvectors of a small symmetric matrix.
#pragma once

#include <span>
#include <vector>

namespace dtrain::nn {

struct SymmetricEigen {
  std::vector<double> values;   // the largest first
  std::vector<double> vectors;  // [n, n]: row k belongs to values[k]; of length 1, its largest component is positive
};

// `matrix` [n, n] is symmetric; only finite numbers. By Jacobi's rotations, with nothing but IEEE arithmetic and square
// roots, so the result is the same on every CPU. Time n^3 times a few sweeps: for dozens of rows, not thousands.
SymmetricEigen symmetric_eigen(std::span<const double> matrix);

}  // namespace dtrain::nn
