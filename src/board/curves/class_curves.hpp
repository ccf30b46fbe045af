// How sure a network must be of each class: precision over recall, from the predictions of a report.
#pragma once

#include <string_view>

#include <dtrain/base/json.hpp>

namespace dtrain::board {

// `table`: predictions.csv of `dtrain eval --report`. {"curves": [{"name", "samples", "f1", "recall": [...],
// "precision": [...]}]}, the class of the lowest F1 first. A point is what holds where predictions below some
// probability are left out. The table has the best guess of each image alone, so a curve ends at the class's recall,
// and the area below it is no average precision, which needs the probability of the class in every image. Throws
// DataError for another table.
Json class_curves(std::string_view table);

}  // namespace dtrain::board
