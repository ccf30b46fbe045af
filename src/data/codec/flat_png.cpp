// PNG without compression (RFC 2083 with stored blocks, RFC 1951, 3.2.4): a file like any other for other programs, and
// for dtrain a copy and a checksum. Its parts always stand at the same places:
//   signature | IHDR | IDAT: zlib header, one stored block of rows that each begin with filter 0, Adler-32 | IEND
#include <fmt/format.h>
#include <zlib.h>

#include <limits>

#include <dtrain/base/error.hpp>

#include "bytes.hpp"
#include "codecs.hpp"

namespace dtrain::data {
namespace {

constexpr std::string_view kSignature{"\x89PNG\r\n\x1a\n"}, kEnd{"\0\0\0\0IEND\xae\x42\x60\x82", 12};
constexpr std::size_t kNumber = 4, kMostRows = std::numeric_limits<std::uint16_t>::max();
constexpr std::size_t kBlockHeader = 7;  // of zlib and of its one block
// Where numbers of IHDR are: behind signature, length and name.
constexpr std::size_t kWidthAt = 16, kHeightAt = 20, kColourAt = 25;

void append_big_endian(std::string& out, std::uint32_t number) { append(out, __builtin_bswap32(number)); }
std::uint32_t big_endian(ByteView bytes, std::size_t at) { return __builtin_bswap32(load<std::uint32_t>(bytes, at)); }

std::uint32_t crc_of(std::string_view bytes) {
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

// Bytes of the rows with their filters.
std::uint64_t row_bytes(const StoredShape& shape) { return shape.h * (1 + shape.w * shape.c); }

// All that stands before the rows.
std::string head_of(const StoredShape& shape) {
  const auto rows = static_cast<std::uint16_t>(row_bytes(shape));
  std::string head(kSignature);
  append_big_endian(head, 13);
  head += "IHDR";
  append_big_endian(head, static_cast<std::uint32_t>(shape.w));
  append_big_endian(head, static_cast<std::uint32_t>(shape.h));
  head += {8, static_cast<char>(shape.c == 1 ? 0 : 2), 0, 0, 0};
  append_big_endian(head, crc_of(std::string_view(head).substr(kSignature.size() + kNumber)));
  append_big_endian(head, static_cast<std::uint32_t>(kBlockHeader + rows + kNumber));
  head += "IDAT";
  head += {0x78, 0x01, 0x01};
  append(head, rows);
  append(head, static_cast<std::uint16_t>(~rows));
  return head;
}

// Where the checksum of IDAT begins, at its name.
std::size_t idat_at(const std::string& head) { return head.size() - kBlockHeader - kNumber; }

std::optional<StoredShape> shape_of(ByteView payload) {
  if (payload.size() <= kColourAt) return std::nullopt;
  const auto colour = std::to_integer<int>(payload[kColourAt]);
  const StoredShape shape{colour == 0 ? 1u : 3u, big_endian(payload, kHeightAt), big_endian(payload, kWidthAt)};
  if (shape.h == 0 || shape.w == 0 || shape.h > kMostRows || shape.w > kMostRows || row_bytes(shape) > kMostRows)
    return std::nullopt;
  return shape;
}

}  // namespace

bool decode_flat_png(ByteView payload, Image& out) {
  const auto shape = shape_of(payload);
  if (!shape) return false;
  const std::string head = head_of(*shape);
  const std::string_view text = text_of(payload);
  const std::size_t rows = row_bytes(*shape), end = head.size() + rows + kNumber;
  if (!text.starts_with(head) || text.size() != end + kNumber + kEnd.size() || !text.ends_with(kEnd)) return false;
  if (crc_of(text.substr(idat_at(head), end - idat_at(head))) != big_endian(payload, end))
    throw DataError("PNG: its checksum is wrong: the record was damaged after it was written");
  shape_image(out, *shape, payload, "PNG");
  const std::size_t width = shape->w * shape->c;
  for (std::size_t y = 0; y < shape->h; ++y) {
    const std::size_t row = head.size() + y * (1 + width);
    if (text[row] != 0) return false;  // a filter that undoes differences
    std::memcpy(out.pixels.data() + y * width, text.data() + row + 1, width);
  }
  return true;
}

std::string encode_flat_png(const Image& image) {
  const StoredShape shape{static_cast<std::uint64_t>(image.c), static_cast<std::uint64_t>(image.h),
                          static_cast<std::uint64_t>(image.w)};
  if (row_bytes(shape) > kMostRows) return encode_png(image);
  std::string out = head_of(shape);
  const std::size_t rows = out.size(), width = shape.w * shape.c, idat = idat_at(out);
  for (std::size_t y = 0; y < shape.h; ++y) {
    out += '\0';
    out.append(reinterpret_cast<const char*>(image.pixels.data()) + y * width, width);
  }
  const auto* const begin = reinterpret_cast<const Bytef*>(out.data()) + rows;
  append_big_endian(out, static_cast<std::uint32_t>(::adler32(1, begin, static_cast<uInt>(out.size() - rows))));
  append_big_endian(out, crc_of(std::string_view(out).substr(idat)));
  return out.append(kEnd);
}

}  // namespace dtrain::data
