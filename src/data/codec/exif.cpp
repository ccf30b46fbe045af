#include "exif.hpp"

#include <optional>

#include "bytes.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint16_t kOrientationTag = 0x0112;
constexpr std::string_view kExif("Exif\0\0", 6);
constexpr int kUpright = 1, kLastOrientation = 8;

// Numbers beyond those of TIFF 6.0 say nothing.
int known_orientation(int number) { return number >= kUpright && number <= kLastOrientation ? number : kUpright; }

std::uint16_t big_endian_16(ByteView bytes, std::size_t at) {
  return static_cast<std::uint16_t>(static_cast<unsigned>(bytes[at]) << 8 | static_cast<unsigned>(bytes[at + 1]));
}

std::uint32_t big_endian_32(ByteView bytes, std::size_t at) {
  return std::uint32_t{big_endian_16(bytes, at)} << 16 | big_endian_16(bytes, at + 2);
}

// The content of the first APP1 segment that is EXIF; empty when there is none before the pixels.
ByteView exif_of_jpeg(ByteView jpeg) {
  for (std::size_t at = 2; at + 4 <= jpeg.size();) {
    if (jpeg[at] != std::byte{0xff}) return {};
    if (jpeg[at + 1] == std::byte{0xff}) {  // any number of these may stand before a marker
      ++at;
      continue;
    }
    const auto marker = static_cast<unsigned>(jpeg[at + 1]);
    if (marker == 0xda || marker == 0xd9) return {};
    const std::size_t length = big_endian_16(jpeg, at + 2);
    if (length < 2 || at + 2 + length > jpeg.size()) return {};
    const ByteView content = jpeg.subspan(at + 4, length - 2);
    if (marker == 0xe1 && text_of(content).starts_with(kExif)) return content;
    at += 2 + length;
  }
  return {};
}

// The content of the chunk eXIf, which may stand behind the pixels.
ByteView exif_of_png(ByteView png) {
  constexpr std::size_t kSignature = 8, kFrame = 12;  // length, type and checksum
  for (std::size_t at = kSignature; at + kFrame <= png.size();) {
    const std::size_t length = big_endian_32(png, at);
    if (length > png.size() - at - kFrame) return {};
    if (text_of(png.subspan(at + 4, 4)) == "eXIf") return png.subspan(at + 8, length);
    at += kFrame + length;
  }
  return {};
}

// The content of the chunk EXIF of a RIFF file, whose chunks have an even size.
ByteView exif_of_webp(ByteView webp) {
  constexpr std::size_t kFileHead = 12, kHead = 8;
  for (std::size_t at = kFileHead; at + kHead <= webp.size();) {
    const std::size_t length = load<std::uint32_t>(webp, at + 4);
    if (length > webp.size() - at - kHead) return {};
    if (text_of(webp.subspan(at, 4)) == "EXIF") return webp.subspan(at + kHead, length);
    at += kHead + length + length % 2;
  }
  return {};
}

ByteView exif_block(ByteView file) {
  ByteView block;
  const std::optional<Encoding> encoding = detect_encoding(file);
  if (encoding == Encoding::jpeg) block = exif_of_jpeg(file);
  if (encoding == Encoding::png) block = exif_of_png(file);
  if (encoding == Encoding::webp) block = exif_of_webp(file);
  return text_of(block).starts_with(kExif) ? block.subspan(kExif.size()) : block;
}

// Numbers of a TIFF block, which says its byte order at its beginning.
struct Tiff {
  ByteView bytes;
  bool big = false;

  std::optional<std::uint32_t> u16(std::size_t at) const {
    if (at + 2 > bytes.size()) return std::nullopt;
    return big ? big_endian_16(bytes, at) : load<std::uint16_t>(bytes, at);
  }
  std::optional<std::uint32_t> u32(std::size_t at) const {
    const auto first = u16(at), second = u16(at + 2);
    if (!first || !second) return std::nullopt;
    return big ? *first << 16 | *second : *second << 16 | *first;
  }
};

}  // namespace

int exif_orientation(ByteView file) {
  Tiff tiff{exif_block(file)};
  const std::string_view order = text_of(tiff.bytes).substr(0, 2);
  if (order != "II" && order != "MM") return kUpright;
  tiff.big = order == "MM";
  const std::size_t directory = tiff.u32(4).value_or(0);
  const std::uint32_t entries = tiff.u16(directory).value_or(0);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + std::size_t{12} * i;
    if (tiff.u16(entry) != kOrientationTag) continue;
    return known_orientation(static_cast<int>(tiff.u16(entry + 8).value_or(kUpright)));
  }
  return kUpright;
}

void turn_upright(Image& image, int orientation) {
  orientation = known_orientation(orientation);
  if (orientation == kUpright) return;
  const bool sideways = orientation >= 5;
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Image turned{image.c, sideways ? image.w : image.h, sideways ? image.h : image.w, {}};
  turned.pixels.reserve(image.pixels.size());
  for (int y = 0; y < turned.h; ++y) {
    for (int x = 0; x < turned.w; ++x) {
      int from_y = sideways ? x : y, from_x = sideways ? y : x;
      if (flip_y) from_y = image.h - 1 - from_y;
      if (flip_x) from_x = image.w - 1 - from_x;
      const std::uint8_t* pixel =
          &image.pixels[static_cast<std::size_t>((std::ptrdiff_t{from_y} * image.w + from_x) * image.c)];
      turned.pixels.insert(turned.pixels.end(), pixel, pixel + image.c);
    }
  }
  image = std::move(turned);
}

}  // namespace dtrain::data
