#include <dtrain/base/stats.hpp>

#include <algorithm>
#include <cstddef>

#include <dtrain/base/error.hpp>

namespace dtrain {

double quantile(std::span<const double> ascending, double share) {
  DTRAIN_CHECK(!ascending.empty(), "a quantile needs values");
  return ascending[static_cast<std::size_t>(share * static_cast<double>(ascending.size() - 1) + 0.5)];
}

double median(std::vector<double> values) {
  DTRAIN_CHECK(!values.empty(), "a median needs values");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double interpolated_median(std::vector<double> values) {
  DTRAIN_CHECK(!values.empty(), "a median needs values");
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

double interpolated_median_without(std::span<const double> ascending, std::size_t index) {
  DTRAIN_CHECK(ascending.size() > 1 && index < ascending.size(), "a median needs values");
  const auto other = [&](std::size_t place) { return ascending[place < index ? place : place + 1]; };
  const std::size_t others = ascending.size() - 1;
  return (other((others - 1) / 2) + other(others / 2)) / 2;
}

}  // namespace dtrain
