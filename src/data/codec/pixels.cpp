// dtrain's own payload, man/dtrain-records.5. Little-endian:
//   magic "DTPX" | version u8 = 1 | encoding u8: 0 raw, 1 zstd | channels u16 | height u32 | width u32 |
//   CRC-32C of the pixels u32 | the pixels, h*w*c bytes, interleaved; as one zstd frame with encoding 1
#include <fmt/format.h>
#include <zstd.h>

#include <memory>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/releaser.hpp>

#include "bytes.hpp"
#include "codecs.hpp"

namespace dtrain::data {
namespace {

constexpr std::size_t kHeaderSize = 20;
constexpr int kZstdLevel = 3;

// Checked before memory is taken: a damaged size must not ask for more than the content can fill.
void check_size(std::uint64_t found, std::uint64_t expected) {
  if (found == expected) return;
  throw DataError(fmt::format("pixels: {} bytes where the header says {}", found, expected));
}

std::uint64_t size_inside(ByteView zstd_frame) {
  const unsigned long long size = ZSTD_getFrameContentSize(zstd_frame.data(), zstd_frame.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN) {
    throw DataError("pixels: no zstd frame with its size follows the header");
  }
  return size;
}

// One a thread, used again: to make it costs more than to unpack a small image.
ZSTD_DCtx& decompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, Releaser<ZSTD_freeDCtx>> context(ZSTD_createDCtx());
  DTRAIN_CHECK(context, "zstd gives a context");
  return *context;
}

void decompress(ByteView content, std::vector<std::uint8_t>& pixels) {
  const std::size_t got =
      ZSTD_decompressDCtx(&decompressor(), pixels.data(), pixels.size(), content.data(), content.size());
  if (ZSTD_isError(got)) throw DataError(fmt::format("pixels: zstd: {}", ZSTD_getErrorName(got)));
  check_size(got, pixels.size());
}

std::string compress(ByteView pixels) {
  std::string out(ZSTD_compressBound(pixels.size()), '\0');
  const std::size_t got = ZSTD_compress(out.data(), out.size(), pixels.data(), pixels.size(), kZstdLevel);
  DTRAIN_CHECK(!ZSTD_isError(got), "zstd compresses into a buffer of its own bound");
  out.resize(got);
  return out;
}

}  // namespace

void decode_pixels(ByteView payload, Image& out) {
  if (payload.size() < kHeaderSize) throw DataError("pixels: cut short inside the header");
  const bool raw = text_of(payload).starts_with(kRawMagic);
  const StoredShape shape{load<std::uint16_t>(payload, 6), load<std::uint32_t>(payload, 8),
                          load<std::uint32_t>(payload, 12)};
  check_shape(shape, payload, "pixels");
  const ByteView content = payload.subspan(kHeaderSize);
  check_size(raw ? content.size() : size_inside(content), shape.c * shape.h * shape.w);
  shape_image(out, shape, payload, "pixels");
  if (raw) {
    std::memcpy(out.pixels.data(), content.data(), content.size());
  } else {
    decompress(content, out.pixels);
  }
  if (crc32c(std::as_bytes(std::span(out.pixels))) != load<std::uint32_t>(payload, 16)) {
    throw DataError("pixels: their checksum is wrong: the record was damaged after it was written");
  }
}

std::string encode_pixels(const Image& image, Encoding encoding) {
  const ByteView pixels = std::as_bytes(std::span(image.pixels));
  std::string out(encoding == Encoding::zstd ? kZstdMagic : kRawMagic);
  append(out, static_cast<std::uint16_t>(image.c));
  append(out, static_cast<std::uint32_t>(image.h));
  append(out, static_cast<std::uint32_t>(image.w));
  append(out, crc32c(pixels));
  if (encoding == Encoding::zstd) return out + compress(pixels);
  out += text_of(pixels);
  return out;
}

}  // namespace dtrain::data
