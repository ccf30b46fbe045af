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

}  // namespace dtrain
