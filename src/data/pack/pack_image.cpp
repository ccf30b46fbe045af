#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

#include "augment/source_window.hpp"
#include "augment/window_pixels.hpp"
#include "codec/codecs.hpp"
#include "codec/exif.hpp"
#include "pack_image.hpp"

namespace dtrain::data {
namespace {

constexpr int kPackQuality = 95;  // im2rec's

}  // namespace

std::string packed_payload(ByteView file, const PackOptions& options) {
  const std::optional<Encoding> stored = detect_encoding(file);
  const JpegOptions finish{.quality = options.quality.value_or(kPackQuality), .full_colour = false};
  if (stored == Encoding::jpeg && options.resize > 0) {
    if (const auto shrunk = shrunk_jpeg(file, options.resize)) {
      return encode_image(*shrunk, options.encoding.value_or(*stored), finish);
    }
  }
  Image image;
  decode_image(file, kStoredChannels, image);
  const bool turned = stored == Encoding::jpeg && exif_orientation(file) != 1;
  const bool is_plain = stored == Encoding::bmp || stored == Encoding::tiff;  // of other programs; PNG loses nothing
  const bool resized = options.resize > 0 && std::min(image.h, image.w) != options.resize;
  const Encoding wanted = options.encoding.value_or(is_plain ? Encoding::png : *stored);
  if (stored == wanted && !turned && !resized && !options.quality) return std::string(text_of(file));
  if (resized) {
    const Sides sides = with_shorter_edge(image.h, image.w, options.resize);
    image = resize_image(image, sides.h, sides.w);
  }
  return encode_image(image, wanted == Encoding::webp ? Encoding::jpeg : wanted, finish);
}

}  // namespace dtrain::data
