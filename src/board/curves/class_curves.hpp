// How sure a network must be of each class: precision over recall, from the predictions of a report.
#pragma once

#include <string_view>

#include <dtrain/base/json.hpp>

namespace dtrain::board {

// `table`: predictions.csv of `dtrain eval --report`. {"curves": [{"name", "samples", "average_precision", "recall":
// [...], "precision": [...]}]}, the worst class first. A point is what holds where predictions below some probability
// are left out; of each class only the predictions that name it count. Throws DataError for another table.
Json class_curves(std::string_view table);

}  // namespace dtrain::board
