#include <fmt/format.h>
#include <spng.h>
#include <zlib.h>

#include <cstdlib>
#include <memory>

#include <dtrain/base/error.hpp>
#include <dtrain/base/releaser.hpp>

#include "bytes.hpp"
#include "codecs.hpp"

namespace dtrain::data {
namespace {

using Context = std::unique_ptr<spng_ctx, Releaser<spng_ctx_free>>;

void check(int error) {
  if (error) throw DataError(fmt::format("PNG: {}", spng_strerror(error)));
}

// Texts and profiles beside the pixels, unpacked: an image needs none of them.
constexpr std::size_t kLargestChunk = 8u << 20, kAllChunks = 16u << 20;
constexpr std::uint32_t kLongestSide = 1u << 20;

// RGB of a grey image holds each value three times.
void keep_every_third(Image& image) {
  const std::size_t count = image.pixels.size() / 3;
  for (std::size_t i = 0; i < count; ++i) image.pixels[i] = image.pixels[3 * i];
  image.pixels.resize(count);
  image.c = 1;
}

// The chunk tEXt (PNG, 11.3.4.3) that says which software made the picture, and its place: behind signature and IHDR.
constexpr std::string_view kOwnText{"tEXtSoftware\0dtrain", 19};
constexpr std::size_t kOwnTextAt = 33;

std::string own_text_chunk() {
  std::string chunk;
  append(chunk, __builtin_bswap32(static_cast<std::uint32_t>(kOwnText.size() - 4)));
  chunk += kOwnText;
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(kOwnText.data()), static_cast<uInt>(kOwnText.size()));
  append(chunk, __builtin_bswap32(static_cast<std::uint32_t>(crc)));
  return chunk;
}

}  // namespace

void decode_png(ByteView payload, Image& out) {
  if (decode_flat_png(payload, out)) return;
  const Context context(spng_ctx_new(0));
  DTRAIN_CHECK(context, "libspng gives a context");
  check(spng_set_chunk_limits(context.get(), kLargestChunk, kAllChunks));
  check(spng_set_image_limits(context.get(), kLongestSide, kLongestSide));
  check(spng_set_png_buffer(context.get(), payload.data(), payload.size()));
  spng_ihdr header{};
  check(spng_get_ihdr(context.get(), &header));
  shape_image(out, {3, header.height, header.width}, payload, "PNG");
  check(spng_decode_image(context.get(), out.pixels.data(), out.pixels.size(), SPNG_FMT_RGB8, 0));
  check(spng_decode_chunks(context.get()));  // to the end: the last pixels' checksum comes after them
  const bool grey =
      header.color_type == SPNG_COLOR_TYPE_GRAYSCALE || header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
  if (grey) keep_every_third(out);
}

std::string encode_png(const Image& image) {
  const Context context(spng_ctx_new(SPNG_CTX_ENCODER));
  DTRAIN_CHECK(context, "libspng gives a context");
  check(spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1));
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(image.w);
  header.height = static_cast<std::uint32_t>(image.h);
  header.bit_depth = 8;
  header.color_type = image.c == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR;
  check(spng_set_ihdr(context.get(), &header));
  check(spng_encode_image(context.get(), image.pixels.data(), image.pixels.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE));
  std::size_t size = 0;
  int error = 0;
  const std::unique_ptr<void, Releaser<std::free>> bytes(spng_get_png_buffer(context.get(), &size, &error));
  check(error);
  return {static_cast<const char*>(bytes.get()), size};
}

std::string encode_own_png(const Image& image) {
  return encode_image(image, Encoding::png).insert(kOwnTextAt, own_text_chunk());
}

bool is_own_png(ByteView beginning) {
  return detect_encoding(beginning) == Encoding::png && beginning.size() > kOwnTextAt &&
         text_of(beginning).substr(kOwnTextAt).starts_with(own_text_chunk());
}

}  // namespace dtrain::data
