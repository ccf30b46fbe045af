// BMP, as Windows and scanners write it: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits, not compressed.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdlib>

#include <dtrain/base/error.hpp>

#include "bytes.hpp"
#include "codecs.hpp"

namespace dtrain::data {
namespace {

constexpr std::size_t kFileHeader = 14, kOldHeader = 12, kUsualHeader = 40, kLargestHeader = 124;
constexpr std::uint32_t kPlain = 0, kBitFields = 3, kAlphaBitFields = 6;

struct Header {
  std::uint32_t size = 0;  // of the header behind the file's
  std::uint64_t pixels_at = 0;
  std::int64_t w = 0, h = 0;
  bool top_first = false;
  unsigned bits = 0;
  std::array<std::uint32_t, 3> masks{};  // red, green, blue, of 16 and 32 bits
  std::uint64_t palette_at = 0, palette_size = 0, palette_entry = 4;
};

[[noreturn]] void refuse_compressed(std::uint32_t kind) {
  throw DataError(fmt::format("BMP: is compressed (kind {})", kind), "save it as PNG");
}

void require(bool holds, const char* what) {
  if (!holds) throw DataError(fmt::format("BMP: {}", what));
}

void read_masks(ByteView file, std::uint32_t compression, Header& header) {
  if (compression == kBitFields || compression == kAlphaBitFields) {
    require(file.size() >= kFileHeader + kUsualHeader + 12, "cut short inside the header");
    for (std::size_t i = 0; i < 3; ++i) header.masks[i] = load<std::uint32_t>(file, kFileHeader + kUsualHeader + 4 * i);
  } else if (header.bits == 16) {
    header.masks = {0x7c00, 0x3e0, 0x1f};
  } else {
    header.masks = {0xff0000, 0xff00, 0xff};
  }
}

Header read_old_header(ByteView file) {
  Header header{.size = kOldHeader};
  header.w = load<std::uint16_t>(file, 18);
  header.h = load<std::uint16_t>(file, 20);
  header.bits = load<std::uint16_t>(file, 24);
  header.palette_entry = 3;
  return header;
}

Header read_header(ByteView file) {
  require(file.size() >= kFileHeader + kOldHeader, "cut short inside the header");
  const auto size = load<std::uint32_t>(file, kFileHeader);
  if (size == kOldHeader) return read_old_header(file);
  require(size >= kUsualHeader && file.size() >= kFileHeader + kUsualHeader, "the header is damaged or cut short");
  Header header{.size = size};
  header.w = load<std::int32_t>(file, 18);
  header.h = load<std::int32_t>(file, 22);
  header.top_first = header.h < 0;
  header.h = std::abs(header.h);
  header.bits = load<std::uint16_t>(file, 28);
  const auto compression = load<std::uint32_t>(file, 30);
  if (compression != kPlain && compression != kBitFields && compression != kAlphaBitFields)
    refuse_compressed(compression);
  header.palette_size = load<std::uint32_t>(file, 46);
  read_masks(file, compression, header);
  return header;
}

Header checked_header(ByteView file) {
  Header header = read_header(file);
  const bool known = header.bits == 1 || header.bits == 4 || header.bits == 8 || header.bits == 16 ||
                     header.bits == 24 || header.bits == 32;
  if (!known) throw DataError(fmt::format("BMP: {} bits for a pixel", header.bits), "save it as PNG");
  require(header.w > 0 && header.h > 0, "the header is damaged: no columns or no rows");
  header.pixels_at = load<std::uint32_t>(file, 10);
  header.palette_at = kFileHeader + std::uint64_t{header.size};
  if (header.bits <= 8) {
    const std::uint64_t most = std::uint64_t{1} << header.bits;
    if (header.palette_size == 0 || header.palette_size > most) header.palette_size = most;
    require(header.palette_at + header.palette_size * header.palette_entry <= file.size(),
            "cut short inside the palette");
  }
  return header;
}

// The bits of the mask as a number from 0 to 255.
std::uint8_t share_of(std::uint32_t pixel, std::uint32_t mask) {
  if (mask == 0) return 0;
  const std::uint32_t most = mask >> std::countr_zero(mask);
  const std::uint64_t value = (pixel & mask) >> std::countr_zero(mask);
  return static_cast<std::uint8_t>((value * 255 + most / 2) / most);
}

void read_row(const Header& header, ByteView file, std::uint64_t at, std::uint8_t* out) {
  for (std::int64_t x = 0; x < header.w; ++x, out += 3) {
    const auto place = static_cast<std::uint64_t>(x);
    if (header.bits <= 8) {
      const unsigned in_byte = 8 / header.bits;
      const unsigned shift = 8 - header.bits * (static_cast<unsigned>(place % in_byte) + 1);
      const auto byte = load<std::uint8_t>(file, at + place / in_byte);
      const std::uint64_t index = (byte >> shift) & ((1u << header.bits) - 1);
      require(index < header.palette_size, "a pixel has a colour that is not in the palette");
      for (std::size_t c = 0; c < 3; ++c)
        out[c] = load<std::uint8_t>(file, header.palette_at + index * header.palette_entry + 2 - c);
    } else if (header.bits == 24) {
      for (std::size_t c = 0; c < 3; ++c) out[c] = load<std::uint8_t>(file, at + 3 * place + 2 - c);
    } else {
      const std::uint32_t pixel =
          header.bits == 16 ? load<std::uint16_t>(file, at + 2 * place) : load<std::uint32_t>(file, at + 4 * place);
      for (std::size_t c = 0; c < 3; ++c) out[c] = share_of(pixel, header.masks[c]);
    }
  }
}

}  // namespace

bool is_bmp(ByteView payload) {
  if (payload.size() < kFileHeader + 2 || !text_of(payload).starts_with("BM")) return false;
  const auto size = load<std::uint16_t>(payload, kFileHeader);
  return size == kOldHeader || (size >= kUsualHeader && size <= kLargestHeader);
}

void decode_bmp(ByteView payload, Image& out) {
  const Header header = checked_header(payload);
  const auto h = static_cast<std::uint64_t>(header.h), w = static_cast<std::uint64_t>(header.w);
  shape_image(out, {3, h, w}, payload, "BMP");
  const std::uint64_t row = (w * header.bits + 31) / 32 * 4;  // rows begin at multiples of four bytes
  const std::uint64_t last = (w * header.bits + 7) / 8;
  require(header.pixels_at + row * (h - 1) + last <= payload.size(), "the pixels are cut short");
  for (std::uint64_t y = 0; y < h; ++y) {
    const std::uint64_t line = header.top_first ? y : h - 1 - y;
    read_row(header, payload, header.pixels_at + line * row, out.pixels.data() + y * w * 3);
  }
}

}  // namespace dtrain::data
