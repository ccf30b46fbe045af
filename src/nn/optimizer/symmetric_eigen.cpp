#include "symmetric_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <dtrain/base/error.hpp>
#include <dtrain/base/math.hpp>

namespace dtrain::nn {
namespace {

constexpr int kMostSweeps = 64;  // each squares what is left: a handful is enough

class Jacobi {
 public:
  Jacobi(std::span<const double> matrix, std::size_t n)
      : n_(n), matrix_(matrix.begin(), matrix.end()), rows_(n * n, 0.0) {
    for (std::size_t k = 0; k < n; ++k) rows_[k * n + k] = 1;
  }

  // Rotates until nothing is left beside the diagonal.
  void run() {
    for (int sweep = 0; sweep < kMostSweeps && off_diagonal() > 0; ++sweep) {
      for (std::size_t p = 0; p < n_; ++p) {
        for (std::size_t q = p + 1; q < n_; ++q) rotate(p, q);
      }
    }
  }

  double value(std::size_t k) const { return matrix_[k * n_ + k]; }
  std::span<const double> vector(std::size_t k) const { return std::span(rows_).subspan(k * n_, n_); }

 private:
  double& at(std::size_t row, std::size_t column) { return matrix_[row * n_ + column]; }

  double off_diagonal() const {
    double sum = 0;
    for (std::size_t p = 0; p < n_; ++p) {
      for (std::size_t q = p + 1; q < n_; ++q) sum += std::abs(matrix_[p * n_ + q]);
    }
    return sum;
  }

  // Turns the plane of p and q so that their element becomes 0: Golub and Van Loan, "Matrix Computations", 8.5.
  void rotate(std::size_t p, std::size_t q) {
    const double element = at(p, q);
    if (std::abs(element) <= 1e-18 * (std::abs(at(p, p)) + std::abs(at(q, q)))) {
      at(p, q) = at(q, p) = 0;
      return;
    }
    const double theta = (at(q, q) - at(p, p)) / (2 * element);
    const double tangent = (theta < 0 ? -1 : 1) / (std::abs(theta) + portable_sqrt(theta * theta + 1));
    const double cosine = 1 / portable_sqrt(tangent * tangent + 1), sine = tangent * cosine;
    const auto turn = [&](double& of_p, double& of_q) {
      const double old_p = of_p, old_q = of_q;
      of_p = cosine * old_p - sine * old_q;
      of_q = sine * old_p + cosine * old_q;
    };
    for (std::size_t k = 0; k < n_; ++k) turn(at(k, p), at(k, q));
    for (std::size_t k = 0; k < n_; ++k) turn(at(p, k), at(q, k));
    for (std::size_t k = 0; k < n_; ++k) turn(rows_[p * n_ + k], rows_[q * n_ + k]);
    at(p, q) = at(q, p) = 0;
  }

  std::size_t n_;
  std::vector<double> matrix_;
  std::vector<double> rows_;  // the rotations so far: the eigenvectors in the end
};

double sign_of_largest(std::span<const double> vector) {
  const auto size = [](double x) { return std::abs(x); };
  return *std::ranges::max_element(vector, {}, size) < 0 ? -1 : 1;
}

}  // namespace

SymmetricEigen symmetric_eigen(std::span<const double> matrix) {
  std::size_t n = 0;
  while (n * n < matrix.size()) ++n;
  DTRAIN_CHECK(n * n == matrix.size(), "a square matrix");
  Jacobi jacobi(matrix, n);
  jacobi.run();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t k) { return jacobi.value(k); });
  SymmetricEigen eigen;
  for (const std::size_t k : order) {
    const std::span<const double> vector = jacobi.vector(k);
    const double sign = sign_of_largest(vector);
    eigen.values.push_back(jacobi.value(k));
    for (const double component : vector) eigen.vectors.push_back(sign * component);
  }
  return eigen;
}

}  // namespace dtrain::nn
