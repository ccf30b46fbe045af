#include <webp/decode.h>

#include <dtrain/base/error.hpp>

#include "codecs.hpp"

namespace dtrain::data {

void decode_webp(ByteView payload, Image& out) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(payload.data());
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(bytes, payload.size(), &features) != VP8_STATUS_OK)
    throw DataError("WebP: the header is damaged or cut short");
  if (features.has_animation) throw DataError("WebP: is animated", "save one of its pictures as a file of its own");
  shape_image(out, {3, static_cast<std::uint64_t>(features.height), static_cast<std::uint64_t>(features.width)},
              payload, "WebP");
  if (!WebPDecodeRGBInto(bytes, payload.size(), out.pixels.data(), out.pixels.size(), 3 * out.w))
    throw DataError("WebP: the pixels are damaged or cut short");
}

}  // namespace dtrain::data
