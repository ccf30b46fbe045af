// Labels of a source as records can hold them, and boxes among them that a detector can train on.
#pragma once

#include <span>
#include <vector>

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

// The class as a record holds it. Throws DataError for a whole number that would become another one.
float stored_label(double number);
// The same of all labels of a picture. Only those that are classes, one alone or that of each box, must stay as they
// are: other programs may take any numbers. None may become infinite.
std::vector<float> stored_labels(std::span<const double> numbers);

// Takes the boxes out of the item's labels that cannot be trained on and names them in the list, and the item where no
// other is left. Items with an objects block and those without boxes stay as they are.
void leave_out_bad_boxes(PackItem& item, PackList& list);

}  // namespace dtrain::data
