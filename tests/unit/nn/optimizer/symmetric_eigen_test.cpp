#include <gtest/gtest.h>

#include <cmath>

#include <dtrain/base/random.hpp>

#include "optimizer/symmetric_eigen.hpp"

namespace dtrain::nn {
namespace {

using Numbers = std::vector<double>;

// a^T a of a random a: symmetric, no eigenvalue below 0.
Numbers random_square(std::size_t n, std::uint32_t stream) {
  RandomStream random(1, RandomUse::drawing, stream, 0);
  Numbers a(n * n), square(n * n);
  for (double& value : a) value = static_cast<double>(random.normal());
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      for (std::size_t k = 0; k < n; ++k) square[row * n + column] += a[k * n + row] * a[k * n + column];
    }
  }
  return square;
}

TEST(SymmetricEigen, OfTwoRowsIsTheTextbooks) {
  const SymmetricEigen eigen = symmetric_eigen(Numbers{2, 1, 1, 2});
  EXPECT_NEAR(eigen.values[0], 3, 1e-15);
  EXPECT_NEAR(eigen.values[1], 1, 1e-15);
  EXPECT_NEAR(eigen.vectors[0], std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(eigen.vectors[1], std::sqrt(0.5), 1e-15);
  EXPECT_NEAR(eigen.vectors[2], -eigen.vectors[3], 1e-15);
}

TEST(SymmetricEigen, OfADiagonalSortsIt) {
  const SymmetricEigen eigen = symmetric_eigen(Numbers{1, 0, 0, 0, -5, 0, 0, 0, 3});
  EXPECT_EQ(eigen.values, (Numbers{3, 1, -5}));
  EXPECT_EQ(eigen.vectors, (Numbers{0, 0, 1, 1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(symmetric_eigen(Numbers(16, 0.0)).values, Numbers(4, 0.0));
}

TEST(SymmetricEigen, HoldsTheEquationWithVectorsOfLengthOneAtRightAngles) {
  constexpr std::size_t n = 12;
  const Numbers matrix = random_square(n, 1);
  const SymmetricEigen eigen = symmetric_eigen(matrix);
  for (std::size_t k = 0; k < n; ++k) {
    const double* const v = &eigen.vectors[k * n];
    EXPECT_GE(eigen.values[k == 0 ? 0 : k - 1], eigen.values[k]);
    for (std::size_t row = 0; row < n; ++row) {
      double product = 0;
      for (std::size_t column = 0; column < n; ++column) product += matrix[row * n + column] * v[column];
      EXPECT_NEAR(product, eigen.values[k] * v[row], 1e-12 * eigen.values[0]);
    }
    for (std::size_t other = 0; other <= k; ++other) {
      double dot = 0;
      for (std::size_t c = 0; c < n; ++c) dot += v[c] * eigen.vectors[other * n + c];
      EXPECT_NEAR(dot, other == k ? 1 : 0, 1e-13);
    }
  }
}

}  // namespace
}  // namespace dtrain::nn
