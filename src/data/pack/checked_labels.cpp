#include "checked_labels.hpp"

#include <fmt/format.h>

#include <cmath>

#include <dtrain/base/error.hpp>
#include <dtrain/data/objects.hpp>

namespace dtrain::data {

float stored_label(double number) {
  const auto label = static_cast<float>(number);
  if (number == std::floor(number) && static_cast<double>(label) != number) {
    throw DataError(fmt::format("the label {} would become {} in a record", number, static_cast<double>(label)),
                    "number the classes from 0");
  }
  return label;
}

std::vector<float> stored_labels(std::span<const double> numbers) {
  std::vector<float> labels;
  for (const double number : numbers) {
    const auto label = static_cast<float>(number);
    labels.push_back(std::isfinite(label) ? label : stored_label(number));  // throws
  }
  if (numbers.size() == 1) stored_label(numbers.front());
  if (!has_boxes(labels)) return labels;
  const auto width = static_cast<std::size_t>(labels[1]);
  for (auto at = static_cast<std::size_t>(labels[0]); at < numbers.size(); at += width) stored_label(numbers[at]);
  return labels;
}

void leave_out_bad_boxes(PackItem& item, PackList& list) {
  if (!has_boxes(item.labels) || !item.objects.empty()) return;
  const auto header = static_cast<std::ptrdiff_t>(item.labels[0]), width = static_cast<std::ptrdiff_t>(item.labels[1]);
  std::vector<float> kept(item.labels.begin(), item.labels.begin() + header);
  std::size_t number = 0, good = 0;
  for (const std::span<const float> row : box_rows(item.labels)) {
    const std::optional<std::string> fault = fault_of_row(row);
    const bool is_object = fault || row[0] >= 0;
    if (fault) {
      list.objects_left_out[*fault].push_back(fmt::format("object {} of {}", number, item.file));
    } else {
      kept.insert(kept.end(), row.begin(), row.end());
      good += is_object ? 1 : 0;
    }
    number += is_object ? 1 : 0;
  }
  if (good == 0) list.without_objects.push_back(item.file);
  if (std::ssize(kept) == header) kept.resize(static_cast<std::size_t>(header + width), -1);  // a row to pass over
  item.labels = std::move(kept);
}

}  // namespace dtrain::data
