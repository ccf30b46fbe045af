#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

#include "augment/source_window.hpp"
#include "augment/window_pixels.hpp"
#include "codec/codecs.hpp"
#include "codec/exif.hpp"
#include "objects/objects_block.hpp"
#include "pack_image.hpp"

namespace dtrain::data {
namespace {

constexpr int kPackQuality = 95;  // im2rec's

}  // namespace

PackedPicture packed_picture(ByteView file, const PackOptions& options) {
  const std::optional<Encoding> stored = detect_encoding(file);
  const JpegOptions finish{.quality = options.quality.value_or(kPackQuality), .full_colour = false};
  if (stored == Encoding::jpeg && options.resize > 0) {
    if (const auto shrunk = shrunk_jpeg(file, options.resize)) {
      return {encode_image(*shrunk, options.encoding.value_or(*stored), finish), shrunk->h, shrunk->w};
    }
  }
  Image image;
  decode_image(file, kStoredChannels, image);
  const int height = image.h, width = image.w;
  const bool turned = exif_orientation(file) != 1;
  const bool is_plain = stored == Encoding::bmp || stored == Encoding::tiff;  // of other programs; PNG loses nothing
  const bool resized = options.resize > 0 && std::min(image.h, image.w) != options.resize;
  const Encoding wanted = options.encoding.value_or(is_plain ? Encoding::png : *stored);
  if (stored == wanted && !turned && !resized && !options.quality) return {std::string(text_of(file)), height, width};
  if (resized) {
    const Sides sides = with_shorter_edge(image.h, image.w, options.resize);
    image = resize_image(image, sides.h, sides.w);
  }
  const Encoding made = wanted == Encoding::webp ? Encoding::jpeg : wanted;
  return {encode_image(image, made, finish), height, width, made == Encoding::jpeg && stored != Encoding::jpeg};
}

// Annotations of a photograph before it is turned are refused and not turned with it: some of its neighbours stand on
// their head or are mirrored, which no size shows.
void require_annotated_picture(ByteView objects, ByteView file, const PackedPicture& picture) {
  constexpr int kFirstSideways = 5;
  const ScaledSize annotated = annotated_size(objects);
  const int orientation = exif_orientation(file);
  const bool fits = is_same_shape(annotated, picture.height, picture.width);
  const bool is_unturned = annotated == ScaledSize{picture.width, picture.height} && picture.height != picture.width;
  if (orientation >= kFirstSideways && is_same_shape(annotated, picture.width, picture.height) &&
      (is_unturned || !fits)) {
    throw DataError(
        fmt::format("its objects are of the picture of {}x{} pixels before it is turned upright (EXIF orientation {}): "
                    "annotate the pictures as viewers show them, or, where no annotations belong to turned pictures, "
                    "remove the orientation from all (exiftool -Orientation= FILE...)",
                    annotated.width, annotated.height, orientation));
  }
  require_same_shape(annotated, picture.height, picture.width);
}

}  // namespace dtrain::data
