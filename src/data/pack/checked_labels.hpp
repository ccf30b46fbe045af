// Labels of a source as records can hold them, and boxes among them that a detector can train on.
#pragma once

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

// The number as a record holds it. Throws DataError for one that would become another one.
float stored_label(double number);

// Takes the boxes out of the item's labels that cannot be trained on and names them in the list, and the item where no
// other is left. Items with an objects block and those without boxes stay as they are.
void leave_out_bad_boxes(PackItem& item, PackList& list);

}  // namespace dtrain::data
