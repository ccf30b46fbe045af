#include "power_sgd.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <dtrain/base/random.hpp>

namespace dtrain::train {
namespace {

// The key of the numbers that Q begins with; `initial_weights` with a seed that no job has by chance.
constexpr std::uint64_t kSeedOfFactors = 0x506f776572534744;  // "PowerSGD"
// A column of which the others leave less than this share depends on them.
constexpr double kDependent = 1e-5;

// In sixteen sums, which are added in order: the same bits on every processor.
template <typename Sum>
Sum dot(const float* a, const float* b, std::int64_t size) {
  std::array<Sum, 16> sums{};
  const auto lanes = static_cast<std::int64_t>(sums.size());
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      sums[static_cast<std::size_t>(lane)] += static_cast<Sum>(a[i + lane]) * static_cast<Sum>(b[i + lane]);
    }
  }
  for (; i < size; ++i) sums[0] += static_cast<Sum>(a[i]) * static_cast<Sum>(b[i]);
  Sum total = 0;
  for (const Sum sum : sums) total += sum;
  return total;
}

void add_scaled(float* to, float factor, const float* values, std::int64_t size) {
  for (std::int64_t i = 0; i < size; ++i) to[i] += factor * values[i];
}

double length_of_column(const float* column, std::int64_t size) { return std::sqrt(dot<double>(column, column, size)); }

// Gram-Schmidt, column after column; twice, because once leaves what rounding adds. A column that depends on those
// before it becomes 0: its rest is rounding alone, which points anywhere.
void make_orthonormal(float* columns, int rank, std::int64_t rows) {
  for (int k = 0; k < rank; ++k) {
    float* const column = columns + k * rows;
    const double before = length_of_column(column, rows);
    for (int pass = 0; pass < 2; ++pass) {
      for (int other = 0; other < k; ++other) {
        const float* const unit = columns + other * rows;
        add_scaled(column, -static_cast<float>(dot<double>(unit, column, rows)), unit, rows);
      }
    }
    const double length = length_of_column(column, rows);
    const double factor = length > kDependent * before ? 1 / length : 0;
    for (std::int64_t i = 0; i < rows; ++i) column[i] = static_cast<float>(column[i] * factor);
  }
}

bool is_zero(const float* values, std::int64_t size) {
  return std::all_of(values, values + size, [](float value) { return value == 0; });
}

}  // namespace

PowerSgd::PowerSgd(std::span<const nn::TensorView> parameters, int rank) {
  std::int64_t others = 0;
  for (const nn::TensorView& tensor : parameters) {
    const std::int64_t rows = tensor.shape.size() < 2 || tensor.size == 0 ? 1 : tensor.shape.front();
    const std::int64_t columns = tensor.size / rows, least = std::min(rows, columns);
    const int used = static_cast<int>(std::min<std::int64_t>(rank, least));
    if (used * (rows + columns) >= tensor.size) {
      others_.push_back({tensor.offset, tensor.size});
      others += tensor.size;
      continue;
    }
    matrices_.push_back({tensor.offset, rows, columns, used, left_factors_, right_size_});
    left_factors_ += used * rows;
    right_size_ += used * columns;
  }
  left_size_ = left_factors_ + others;
  left_.resize(static_cast<std::size_t>(left_factors_));
  right_.resize(static_cast<std::size_t>(right_size_));
}

void PowerSgd::begin(std::span<const float> gradients) {
  std::vector<float> sum(right_.size());
  set_right(sum);
  std::vector<float> left(static_cast<std::size_t>(left_size_));
  multiply_left(gradients, left);
  set_left(left);
  multiply_right(gradients, sum);
  set_right(sum);
}

void PowerSgd::multiply_left(std::span<const float> gradients, std::span<float> to) const {
  for (const Matrix& m : matrices_) {
    for (std::int64_t row = 0; row < m.rows; ++row) {
      const float* const values = gradients.data() + m.first + row * m.columns;
      for (int k = 0; k < m.rank; ++k) {
        const float* const column = right_.data() + m.right + k * m.columns;
        to[static_cast<std::size_t>(m.left + k * m.rows + row)] = dot<float>(values, column, m.columns);
      }
    }
  }
  auto at = to.begin() + left_factors_;
  for (const FloatRange& other : others_) at = std::copy_n(gradients.begin() + other.first, other.size, at);
}

void PowerSgd::set_left(std::span<const float> sum) {
  std::copy_n(sum.begin(), left_factors_, left_.begin());
  for (const Matrix& m : matrices_) make_orthonormal(left_.data() + m.left, m.rank, m.rows);
}

void PowerSgd::multiply_right(std::span<const float> gradients, std::span<float> to) const {
  std::ranges::fill(to, 0.0f);
  for (const Matrix& m : matrices_) {
    for (std::int64_t row = 0; row < m.rows; ++row) {
      const float* const values = gradients.data() + m.first + row * m.columns;
      for (int k = 0; k < m.rank; ++k) {
        const float factor = left_[static_cast<std::size_t>(m.left + k * m.rows + row)];
        add_scaled(to.data() + m.right + k * m.columns, factor, values, m.columns);
      }
    }
  }
}

// A column of zeros would stay so for ever.
void PowerSgd::set_right(std::span<const float> sum) {
  std::ranges::copy(sum, right_.begin());
  for (std::size_t number = 0; number < matrices_.size(); ++number) {
    const Matrix& m = matrices_[number];
    for (int k = 0; k < m.rank; ++k) {
      float* const column = right_.data() + m.right + k * m.columns;
      if (!is_zero(column, m.columns)) continue;
      RandomStream random(kSeedOfFactors, RandomUse::initial_weights, static_cast<std::uint32_t>(number),
                          static_cast<std::uint32_t>(k));
      std::generate_n(column, m.columns, [&] { return random.normal(); });
    }
  }
}

void PowerSgd::expand(std::span<const float> left, std::span<const float> right, std::span<float> gradients) const {
  for (const Matrix& m : matrices_) {
    for (std::int64_t row = 0; row < m.rows; ++row) {
      float* const values = gradients.data() + m.first + row * m.columns;
      std::fill_n(values, m.columns, 0.0f);
      for (int k = 0; k < m.rank; ++k) {
        const float factor = left_[static_cast<std::size_t>(m.left + k * m.rows + row)];
        add_scaled(values, factor, right.data() + m.right + k * m.columns, m.columns);
      }
    }
  }
  auto at = left.begin() + left_factors_;
  for (const FloatRange& other : others_) {
    std::copy_n(at, other.size, gradients.begin() + other.first);
    at += other.size;
  }
}

void PowerSgd::subtract(std::span<const float> right, std::span<float> gradients) const {
  for (const Matrix& m : matrices_) {
    for (std::int64_t row = 0; row < m.rows; ++row) {
      float* const values = gradients.data() + m.first + row * m.columns;
      for (int k = 0; k < m.rank; ++k) {
        const float factor = left_[static_cast<std::size_t>(m.left + k * m.rows + row)];
        add_scaled(values, -factor, right.data() + m.right + k * m.columns, m.columns);
      }
    }
  }
  for (const FloatRange& other : others_) std::fill_n(gradients.begin() + other.first, other.size, 0.0f);
}

}  // namespace dtrain::train
