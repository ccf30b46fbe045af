// One decoder and one encoder per payload kind. Decoders fill `out` with the stored channels or, where that is as fast,
// the wanted ones; decode_image() converts the rest. They throw DataError whose message starts with the kind's name.
#pragma once

#include <string_view>

#include <dtrain/data/image.hpp>

namespace dtrain::data {

// What dtrain's own payload begins with: magic, version 1, encoding.
inline constexpr std::string_view kRawMagic{"DTPX\1\0", 6}, kZstdMagic{"DTPX\1\1", 6};

// No kind packs more pixels into a byte of payload: zstd repeats a byte 2^17 times in a block of 4 bytes, deflate and
// Huffman codes do less. So a size that the payload cannot fill is refused before memory is taken for it.
inline constexpr std::uint64_t kMaxPixelsPerByte = 1u << 15;

void decode_jpeg(ByteView payload, int channels, Image& out);
std::string encode_jpeg(const Image& image, const JpegOptions& options);

void decode_png(ByteView payload, Image& out);
std::string encode_png(const Image& image);

// A still picture; alpha is dropped.
void decode_webp(ByteView payload, Image& out);

// What begins as a BMP does, by its first 16 bytes: two letters alone begin many a text.
bool is_bmp(ByteView payload);
void decode_bmp(ByteView payload, Image& out);

// The first image of the file; alpha is dropped.
void decode_tiff(ByteView payload, Image& out);

// False for a PNG that encode_flat_png() would not write.
[[nodiscard]] bool decode_flat_png(ByteView payload, Image& out);

void decode_pixels(ByteView payload, Image& out);
std::string encode_pixels(const Image& image, Encoding encoding);

struct StoredShape {
  std::uint64_t c = 0, h = 0, w = 0;
};
// Throws DataError starting with `kind` when no image that dtrain accepts has this shape and this payload.
void check_shape(const StoredShape& shape, ByteView payload, std::string_view kind);
// Checks the shape, and gives `out` its size and its pixels room.
void shape_image(Image& out, const StoredShape& shape, ByteView payload, std::string_view kind);

}  // namespace dtrain::data
