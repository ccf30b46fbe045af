#include <dtrain/base/math.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace dtrain {
namespace {

constexpr int kPoints = 20000;
constexpr double kTolerance = 1e-13;

// Points from low to high, close together near both ends and in between.
template <typename Check>
void over(double low, double high, Check check) {
  for (int i = 0; i <= kPoints; ++i) check(low + (high - low) * i / kPoints);
}

void expect_relative(double ours, double libm, double x) {
  EXPECT_NEAR(ours, libm, kTolerance * std::max(std::abs(libm), 1e-300)) << "at " << x;
}

TEST(PortableMath, ExpAgreesWithLibm) {
  over(-700, 700, [](double x) { expect_relative(portable_exp(x), std::exp(x), x); });
  over(-1, 1, [](double x) { expect_relative(portable_exp(x), std::exp(x), x); });
  EXPECT_EQ(portable_exp(0), 1.0);
}

TEST(PortableMath, LogAgreesWithLibm) {
  over(-300, 300, [](double e) { expect_relative(portable_log(std::pow(10, e)), std::log(std::pow(10, e)), e); });
  over(0.5, 2, [](double x) { expect_relative(portable_log(x), std::log(x), x); });
  expect_relative(portable_log(5e-324), std::log(5e-324), 5e-324);
  EXPECT_EQ(portable_log(1), 0.0);
}

TEST(PortableMath, SineAndCosineAgreeWithLibm) {
  const auto check = [](double x) {
    EXPECT_NEAR(portable_cos(x), std::cos(x), kTolerance) << "at " << x;
    EXPECT_NEAR(portable_sin(x), std::sin(x), kTolerance) << "at " << x;
  };
  over(-10, 10, check);
  over(-1e5, 1e5, check);
}

TEST(PortableMath, ATurnIsExactAtItsQuarters) {
  for (const double whole : {-3.0, 0.0, 1e6}) {
    const TurnPoint east = portable_turn(whole), north = portable_turn(whole + 0.25);
    EXPECT_EQ(east.x, 1.0);
    EXPECT_EQ(east.y, 0.0);
    EXPECT_EQ(north.x, 0.0);
    EXPECT_EQ(north.y, 1.0);
    EXPECT_EQ(portable_turn(whole + 0.5).x, -1.0);
    EXPECT_EQ(portable_turn(whole + 0.75).y, -1.0);
  }
}

TEST(PortableMath, ATurnAgreesWithLibm) {
  over(-2, 2, [](double turns) {
    EXPECT_NEAR(portable_turn(turns).x, std::cos(2 * M_PI * turns), 3 * kTolerance) << "at " << turns;
    EXPECT_NEAR(portable_turn(turns).y, std::sin(2 * M_PI * turns), 3 * kTolerance) << "at " << turns;
  });
}

TEST(PortableMath, PowersAgreeWithLibm) {
  over(-20, 20, [](double e) { EXPECT_NEAR(portable_pow(0.9, e) / std::pow(0.9, e), 1, kTolerance) << "at " << e; });
  EXPECT_EQ(portable_sqrt(2.0), std::sqrt(2.0));
}

}  // namespace
}  // namespace dtrain
