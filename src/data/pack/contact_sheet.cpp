#include <dtrain/data/contact_sheet.hpp>

#include <algorithm>

#include <dtrain/base/error.hpp>

#include "augment/resample.hpp"

namespace dtrain::data {
namespace {

std::uint8_t grey_level(float value) { return static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f); }

// Planes of one sample, enlarged, with their upper left corner at (top, left) of the picture.
void paste(const float* planes, const nn::Shape& shape, const Augment& augment, int zoom, int top, int left,
           Image& picture) {
  for (int c = 0; c < shape.c; ++c) {
    const float mean = augment.mean[static_cast<std::size_t>(c)], std = augment.std[static_cast<std::size_t>(c)];
    for (int y = 0; y < shape.h * zoom; ++y) {
      const float* row = planes + (std::ptrdiff_t{c} * shape.h + y / zoom) * shape.w;
      std::uint8_t* out = picture.pixels.data() + (std::ptrdiff_t{top + y} * picture.w + left) * picture.c + c;
      for (int x = 0; x < shape.w * zoom; ++x) out[x * picture.c] = grey_level(row[x / zoom] * std + mean);
    }
  }
}

int columns_of(int n, const ContactSheet& sheet) { return std::clamp(n, 1, sheet.columns); }

}  // namespace

SheetPlace sheet_place(int i, int n, const nn::Shape& shape, const ContactSheet& sheet) {
  const int columns = columns_of(n, sheet);
  return {sheet.gap + i % columns * (shape.w * sheet.zoom + sheet.gap),
          sheet.gap + i / columns * (shape.h * sheet.zoom + sheet.gap)};
}

Image contact_sheet(const Batch& batch, const nn::Shape& shape, const Augment& augment, const ContactSheet& sheet) {
  DTRAIN_CHECK(sheet.columns >= 1 && sheet.zoom >= 1 && sheet.gap >= 0, "a sheet has columns, and pixels have a size");
  const int columns = columns_of(batch.n, sheet), rows = (batch.n + columns - 1) / columns;
  const int step_y = shape.h * sheet.zoom + sheet.gap, step_x = shape.w * sheet.zoom + sheet.gap;
  Image picture{shape.c, rows * step_y + sheet.gap, columns * step_x + sheet.gap, {}};
  picture.pixels.assign(
      static_cast<std::size_t>(picture.c) * static_cast<std::size_t>(picture.h) * static_cast<std::size_t>(picture.w),
      0);
  for (int i = 0; i < batch.n; ++i) {
    const SheetPlace place = sheet_place(i, batch.n, shape, sheet);
    paste(batch.images + i * shape.size(), shape, augment, sheet.zoom, place.top, place.left, picture);
  }
  return picture;
}

Image thumbnail(ByteView payload, int side) {
  Image image;
  decode_image(payload, 3, image);
  const int longest = std::max(image.h, image.w), zoom = side / longest;
  if (zoom == 0)
    return resize_image(image, std::max(1, image.h * side / longest), std::max(1, image.w * side / longest));
  Image larger{3, image.h * zoom, image.w * zoom, {}};
  for (int y = 0; y < larger.h; ++y) {
    for (int x = 0; x < larger.w; ++x) {
      const auto* pixel = image.pixels.data() + 3 * (std::ptrdiff_t{y / zoom} * image.w + x / zoom);
      larger.pixels.insert(larger.pixels.end(), pixel, pixel + 3);
    }
  }
  return larger;
}

}  // namespace dtrain::data
