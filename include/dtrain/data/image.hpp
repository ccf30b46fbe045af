// Decoded images and the payload encodings, told apart by their magic bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

// Images above this many pixels are refused: a damaged size must not ask for all memory.
inline constexpr std::uint64_t kMaxPixels = 1u << 28;
inline constexpr int kMostShorterEdge = 1 << 14;  // the edge of a square with kMaxPixels
static_assert(std::uint64_t{kMostShorterEdge} * kMostShorterEdge == kMaxPixels);

struct Image {
  int c = 0, h = 0, w = 0;
  std::vector<std::uint8_t> pixels;  // h*w*c, interleaved (RGB for c = 3)
};

// For messages: the kinds of image files that decode_image() reads.
inline constexpr const char* kImagesRead = "JPEG, PNG, WebP, BMP and TIFF";

enum class Encoding { raw, zstd, png, jpeg, webp, bmp, tiff };

std::string_view encoding_name(Encoding encoding);
// The encodings that encode_image() writes: all but WebP, which is only read.
std::vector<std::string> encoding_names();
[[nodiscard]] std::optional<Encoding> parse_encoding(std::string_view name);
// By the magic alone; nullopt when it is none of ours.
[[nodiscard]] std::optional<Encoding> detect_encoding(ByteView payload);

// `channels` that keep what the payload has: 1 for grey, 3 for colour.
inline constexpr int kStoredChannels = 0;

// Decodes JPEG, PNG, WebP or dtrain pixels to `channels` (1, 3 or kStoredChannels; grey is repeated, colour becomes
// luma, alpha is dropped, 16 bits become 8, CMYK becomes RGB, a JPEG, PNG or WebP is turned as its EXIF block says).
// Reuses the memory of `out`. Throws DataError when a payload is of an unknown kind, damaged or cut short.
void decode_image(ByteView payload, int channels, Image& out);

struct JpegOptions {
  int quality = 95;         // 1 to 100
  bool full_colour = true;  // 4:4:4; else 4:2:0, which is smaller and faster to decode
};
// PNG and dtrain pixels without loss. `image` has 1 or 3 channels.
std::string encode_image(const Image& image, Encoding encoding, const JpegOptions& jpeg = {});
// A PNG of which the pixels are not compressed: every program reads it, and decode_image() nearly as fast as raw
// pixels. Images of more than 64 KiB are compressed.
std::string encode_flat_png(const Image& image);

// A PNG for people, which names dtrain as its software.
std::string encode_own_png(const Image& image);
// Whether a file that begins so is one. 64 bytes are enough.
[[nodiscard]] bool is_own_png(ByteView beginning);

}  // namespace dtrain::data
