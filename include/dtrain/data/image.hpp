// Decoded images and the payload encodings, told apart by their magic bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

struct Image {
  int c = 0, h = 0, w = 0;
  std::vector<std::uint8_t> pixels;  // h*w*c, interleaved (RGB for c = 3)
};

enum class Encoding { raw, zstd, png, jpeg };

// Decodes JPEG, PNG or dtrain pixels to `channels` (1 or 3; grey is repeated, colour becomes luma). Throws DataError.
void decode_image(ByteView payload, int channels, Image& out);
std::string encode_image(const Image& image, Encoding encoding);

}  // namespace dtrain::data
