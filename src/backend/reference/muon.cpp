#include "muon.hpp"

#include <cmath>

#include <dtrain/nn/parameter_groups.hpp>

namespace dtrain::backend::reference {
namespace {

struct Matrix {
  Matrix(int of_rows, int of_columns)
      : rows(of_rows), columns(of_columns), values(static_cast<std::size_t>(of_rows) * of_columns) {}
  int rows, columns;
  std::vector<double> values;
  double& at(int row, int column) { return values[static_cast<std::size_t>(row) * columns + column]; }
  double at(int row, int column) const { return values[static_cast<std::size_t>(row) * columns + column]; }
};

Matrix transposed(const Matrix& x) {
  Matrix result(x.columns, x.rows);
  for (int row = 0; row < x.rows; ++row) {
    for (int column = 0; column < x.columns; ++column) result.at(column, row) = x.at(row, column);
  }
  return result;
}

Matrix product(const Matrix& x, const Matrix& y) {
  Matrix result(x.rows, y.columns);
  for (int row = 0; row < x.rows; ++row) {
    for (int column = 0; column < y.columns; ++column) {
      for (int k = 0; k < x.columns; ++k) result.at(row, column) += x.at(row, k) * y.at(k, column);
    }
  }
  return result;
}

Matrix sum(double p, const Matrix& x, double q, const Matrix& y) {
  Matrix result(x.rows, x.columns);
  for (std::size_t k = 0; k < result.values.size(); ++k) result.values[k] = p * x.values[k] + q * y.values[k];
  return result;
}

Matrix orthogonal(const Matrix& g, const nn::NewtonSchulz& rule) {
  const bool tall = g.rows > g.columns;
  Matrix x = tall ? transposed(g) : g;
  const double length = norm(x.values) + rule.kLeastNorm;
  for (double& value : x.values) value /= length;
  for (int step = 0; step < rule.steps; ++step) {
    const Matrix square = product(x, transposed(x));
    const Matrix rest = sum(rule.b, square, rule.c, product(square, square));
    x = sum(rule.a, x, 1, product(rest, x));
  }
  return tall ? transposed(x) : x;
}

// What the weights of one matrix move along; their momentum goes on.
Matrix direction(const nn::WeightMatrix& of, const nn::Optimizer& rule, std::span<const double> gradients,
                 std::span<float> momenta) {
  Matrix result(of.rows, of.columns);
  for (std::int64_t k = 0; k < of.size(); ++k) {
    const double gradient = gradients[of.first + k];
    float& momentum = momenta[of.first + k];
    momentum = static_cast<float>(static_cast<double>(rule.momentum) * momentum + gradient);
    result.values[k] = gradient + static_cast<double>(rule.momentum) * momentum;
  }
  return result;
}

// What a weight is multiplied with before the step.
double scale(const nn::WeightMatrix& of, std::span<const float> weights) {
  const double length = norm(weights);
  return of.scale_free && length > 0 ? std::sqrt(of.rows) / length : 1;
}

}  // namespace

void move_matrices(const nn::Graph& graph, std::span<const double> gradients, const Update& update, ModelState& state) {
  const nn::Optimizer& rule = update.rule;
  for (const nn::WeightMatrix& matrix : nn::weight_matrices(graph)) {
    const auto weights = std::span(state.parameters).subspan(matrix.first, matrix.size());
    const Matrix step = orthogonal(direction(matrix, rule, gradients, state.optimizer), rule.newton_schulz);
    const double factor = scale(matrix, weights);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const double weight = factor * weights[k];
      weights[k] = static_cast<float>(weight - update.learning_rate * (step.values[k] + rule.weight_decay * weight));
    }
  }
}

}  // namespace dtrain::backend::reference
