// The rule muon on the CPU: the reference's numbers, the same bits by however many threads and whichever instructions.
#include "update/muon.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include <dtrain/base/random.hpp>
#include <dtrain/nn/networks.hpp>

#include "common/matrix_problem.hpp"
#include "common/trace.hpp"

namespace dtrain::testing {
namespace {

using backend::cpu::kPanelColumns;
using backend::cpu::MatrixProduct;

std::string difference(const Problem& problem, const nn::Optimizer& rule) {
  TraceOptions options;
  options.update.rule = rule;
  options.updates = 3;
  return compare_backends(*backend::make_cpu_backend(), *backend::make_reference_backend(), problem, options);
}

TEST(CpuMuon, MovesMatricesOfAnyShapeAsTheReferenceDoes) {
  EXPECT_EQ(difference(matrix_problem(), {.kind = nn::OptimizerKind::muon}), "");
  EXPECT_EQ(difference(matrix_problem(), muon_of_odd_numbers()), "");
}

TEST(CpuMuon, GivesTheSameBitsOnAnyNumberOfThreads) {
  const auto parameters = [](int lanes) {
    TraceOptions options;
    options.shards = 4;
    options.lanes = lanes;
    options.update.rule = muon_of_odd_numbers();
    return trace_steps(*backend::make_cpu_backend(), matrix_problem(), options).after.parameters;
  };
  const std::vector<float> alone = parameters(1);
  EXPECT_EQ(parameters(2), alone);
  EXPECT_EQ(parameters(3), alone);
}

// The weight of a layer that no matrix step moves.
TEST(CpuMuon, MovesATransposedConvolutionAsTheReferenceDoes) {
  TraceOptions options;
  options.update.rule = {.kind = nn::OptimizerKind::muon};
  options.updates = 1;
  for (const Problem& problem : detection_problems()) {
    for (const nn::TensorView& view : problem.graph.parameters) {
      if (view.name != "transposed_weight") continue;
      const auto expected = trace_steps(*backend::make_reference_backend(), problem, options).after.parameters;
      const auto actual = trace_steps(*backend::make_cpu_backend(), problem, options).after.parameters;
      for (auto k = static_cast<std::size_t>(view.offset); k < static_cast<std::size_t>(view.offset + view.size); ++k) {
        EXPECT_NE(actual[k], problem.state.parameters[k]) << problem.name;
        EXPECT_NEAR(actual[k], expected[k], 1e-4) << problem.name;
      }
    }
  }
}

std::vector<float> numbers(std::size_t count, std::uint32_t stream) {
  RandomStream random(1, RandomUse::drawing, stream, 0);
  std::vector<float> values(count);
  for (float& value : values) value = random.uniform(-1, 1);
  return values;
}

struct Sizes {
  int rows, inner, columns;
};

class CpuProducts : public ::testing::TestWithParam<Sizes> {
 protected:
  Sizes s = GetParam();
  std::vector<float> left = numbers(static_cast<std::size_t>(s.rows * s.inner), 1);
  std::vector<float> right = numbers(static_cast<std::size_t>(s.inner * s.columns), 2);
  std::vector<float> addend = numbers(static_cast<std::size_t>(s.rows * s.columns), 3);

  std::vector<float> product(const backend::cpu::Kernels& kernels, bool transposed) const {
    std::vector<float> out = addend, panel(static_cast<std::size_t>(s.inner * kPanelColumns));
    for (int first = 0; first < s.columns; first += kPanelColumns) {
      kernels.product_panel({.rows = s.rows,
                             .inner = s.inner,
                             .columns = s.columns,
                             .left = left.data(),
                             .right = right.data(),
                             .right_transposed = transposed,
                             .addend = out.data(),
                             .addend_factor = 2,
                             .factor = -3,
                             .out = out.data()},
                            first, panel.data());
    }
    return out;
  }
};

// More than one tile, panel and depth, and what is left over of each.
INSTANTIATE_TEST_SUITE_P(Sizes, CpuProducts,
                         ::testing::Values(Sizes{1, 1, 1}, Sizes{7, 300, 33}, Sizes{8, 256, 64}, Sizes{5, 513, 20}));

TEST_P(CpuProducts, AreThoseOfTheDefinition) {
  for (const bool transposed : {false, true}) {
    const std::vector<float> out = product(backend::cpu::select_kernels(), transposed);
    for (int row = 0; row < s.rows; ++row) {
      for (int column = 0; column < s.columns; ++column) {
        double sum = 0;
        for (int k = 0; k < s.inner; ++k) {
          const int at = transposed ? column * s.inner + k : k * s.columns + column;
          sum += static_cast<double>(left[static_cast<std::size_t>(row * s.inner + k)]) *
                 right[static_cast<std::size_t>(at)];
        }
        const auto place = static_cast<std::size_t>(row * s.columns + column);
        EXPECT_NEAR(out[place], 2 * addend[place] - 3 * sum, 1e-4);
      }
    }
  }
}

TEST_P(CpuProducts, HaveTheBitsOfThePlainKernels) {
  for (const bool transposed : {false, true}) {
    EXPECT_EQ(product(backend::cpu::select_kernels(), transposed),
              product(backend::cpu::generic::kKernels, transposed));
  }
}

TEST(CpuMuon, SumsOfSquaresHaveTheBitsOfThePlainKernels) {
  for (const std::size_t count : {1u, 16u, 1003u}) {
    const std::vector<float> x = numbers(count, 4);
    const auto size = static_cast<std::int64_t>(count);
    EXPECT_EQ(backend::cpu::select_kernels().sum_of_squares(x.data(), size),
              backend::cpu::generic::kKernels.sum_of_squares(x.data(), size));
  }
}

}  // namespace
}  // namespace dtrain::testing
