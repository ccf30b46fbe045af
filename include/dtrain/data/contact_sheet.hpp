// The images of a batch as one picture for people: what the network is shown, after augmentation.
#pragma once

#include <dtrain/data/loader.hpp>

namespace dtrain::data {

struct ContactSheet {
  int columns = 8;
  int zoom = 1;  // each pixel becomes a square of so many
  int gap = 2;   // black pixels between images and around them
};

// Undoes the normalisation of `augment` and puts the batch's images, left to right and top to bottom, on black. Images
// of `shape` have 1 or 3 channels, so does the picture. Fewer images than columns make a narrower picture.
Image contact_sheet(const Batch& batch, const nn::Shape& shape, const Augment& augment, const ContactSheet& sheet = {});

// Where the upper left pixel of image i of n is on the sheet.
struct SheetPlace {
  int left = 0, top = 0;
};
SheetPlace sheet_place(int i, int n, const nn::Shape& shape, const ContactSheet& sheet);

// The picture of a record in colour, with its aspect, as large as fits into side x side; small ones are magnified by a
// whole number. Throws DataError.
Image thumbnail(ByteView payload, int side);

}  // namespace dtrain::data
