// One picture of data pack.
#pragma once

#include <dtrain/data/pack.hpp>

namespace dtrain::data {

struct PackedPicture {
  std::string payload;        // of its record
  int height = 0, width = 0;  // as the file has it, upright; of a JPEG that is reduced, those of the reduced one
  bool became_jpeg = false;   // and was none
};
// Throws DataError when the file cannot be decoded.
PackedPicture packed_picture(ByteView file, const PackOptions& options);

// Throws DataError unless the objects (objects_block()) can be of this picture of that file, by its shape.
void require_annotated_picture(ByteView objects, ByteView file, const PackedPicture& picture);

}  // namespace dtrain::data
