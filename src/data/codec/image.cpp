#include <dtrain/data/image.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <dtrain/base/error.hpp>

#include "codecs.hpp"
#include "exif.hpp"

namespace dtrain::data {
namespace {

struct Kind {
  Encoding encoding;
  std::string_view name, magic;  // what the payload holds
  std::size_t at = 0;            // this many bytes from its beginning
  bool is_written = true;        // by encode_image()
};

constexpr std::array<Kind, 8> kKinds{{{Encoding::raw, "raw", kRawMagic},
                                      {Encoding::zstd, "zstd", kZstdMagic},
                                      {Encoding::png, "png", "\x89PNG\r\n\x1a\n"},
                                      {Encoding::jpeg, "jpeg", "\xff\xd8\xff"},
                                      {Encoding::webp, "webp", "WEBP", 8, false},
                                      {Encoding::bmp, "bmp", "BM", 0, false},
                                      {Encoding::tiff, "tiff", {"II*\0", 4}, 0, false},
                                      {Encoding::tiff, "tiff", {"MM\0*", 4}, 0, false}}};

bool is_kind(ByteView payload, std::string_view magic, std::size_t at) {
  const std::string_view text = text_of(payload);
  return text.size() >= at && text.substr(at).starts_with(magic);
}

// Kinds of images that dtrain knows by their first bytes and does not read.
struct ForeignKind {
  std::string_view name, magic;
  std::size_t at = 0;
};
constexpr std::array<ForeignKind, 4> kForeignKinds{
    {{"GIF", "GIF8"}, {"AVIF", "ftypavif", 4}, {"HEIC", "ftypheic", 4}, {"JPEG 2000", "ftypjp2", 20}}};

// Pixels without a header have the size of a square image, in most sets.
std::string square_of(std::size_t bytes) {
  for (const std::size_t channels : {3u, 1u}) {
    const std::size_t pixels = bytes / channels;
    const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(pixels)));
    if (side >= 8 && side * side * channels == bytes) return fmt::format("{} x {} x {}", side, side, channels);
  }
  return {};
}

[[noreturn]] void refuse_unknown(ByteView payload) {
  constexpr const char* kHint = "convert the images to JPEG or PNG, and pack them with `dtrain data pack`";
  if (payload.empty()) throw DataError("the record has no image", "make its file again");
  for (const ForeignKind& kind : kForeignKinds) {
    if (!is_kind(payload, kind.magic, kind.at)) continue;
    throw DataError(fmt::format("the image is {}; dtrain reads {} and its own raw pixels", kind.name, kImagesRead),
                    kHint);
  }
  const std::string square = square_of(payload.size());
  if (square.empty()) throw DataError("no image of a kind that dtrain reads: unknown magic", kHint);
  throw DataError(
      fmt::format("no image of a kind that dtrain reads: if its {} bytes are the pixels of {}, nothing says so",
                  payload.size(), square),
      kHint);
}

// BT.601 luma in 1/65536; the weights add up to 65536, so grey stays what it is.
std::uint8_t luma(const std::uint8_t* rgb) {
  return static_cast<std::uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

void to_grey(Image& image) {
  const std::size_t count = image.pixels.size() / 3;
  for (std::size_t i = 0; i < count; ++i) image.pixels[i] = luma(&image.pixels[3 * i]);
  image.pixels.resize(count);
  image.c = 1;
}

void to_colour(Image& image) {
  const std::size_t count = image.pixels.size();
  image.pixels.resize(3 * count);
  for (std::size_t i = count; i-- > 0;) std::fill_n(&image.pixels[3 * i], 3, image.pixels[i]);
  image.c = 3;
}

}  // namespace

std::string_view encoding_name(Encoding encoding) {
  return std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& kind) { return kind.encoding == encoding; })->name;
}

std::vector<std::string> encoding_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) {
    if (kind.is_written) names.emplace_back(kind.name);
  }
  return names;
}

std::optional<Encoding> parse_encoding(std::string_view name) {
  for (const Kind& kind : kKinds) {
    if (kind.is_written && kind.name == name) return kind.encoding;
  }
  return std::nullopt;
}

std::optional<Encoding> detect_encoding(ByteView payload) {
  for (const Kind& kind : kKinds) {
    if (!is_kind(payload, kind.magic, kind.at)) continue;
    if (kind.encoding != Encoding::bmp || is_bmp(payload)) return kind.encoding;
  }
  return std::nullopt;
}

void decode_image(ByteView payload, int channels, Image& out) {
  DTRAIN_CHECK(channels == 1 || channels == 3 || channels == kStoredChannels, "images have 1 or 3 channels");
  const std::optional<Encoding> encoding = detect_encoding(payload);
  if (!encoding) refuse_unknown(payload);
  switch (*encoding) {
    case Encoding::raw:
    case Encoding::zstd:
      decode_pixels(payload, out);
      break;
    case Encoding::png:
      decode_png(payload, out);
      break;
    case Encoding::jpeg:
      decode_jpeg(payload, channels, out);
      break;
    case Encoding::webp:
      decode_webp(payload, out);
      break;
    case Encoding::bmp:
      decode_bmp(payload, out);
      break;
    case Encoding::tiff:
      decode_tiff(payload, out);
      break;
  }
  turn_upright(out, exif_orientation(payload));
  if (channels == 1 && out.c == 3) to_grey(out);
  if (channels == 3 && out.c == 1) to_colour(out);
}

std::string encode_image(const Image& image, Encoding encoding, const JpegOptions& jpeg) {
  DTRAIN_CHECK(image.c == 1 || image.c == 3, "images have 1 or 3 channels");
  DTRAIN_CHECK(image.pixels.size() == std::size_t(image.c) * std::size_t(image.h) * std::size_t(image.w),
               "an image's pixels fill its shape");
  switch (encoding) {
    case Encoding::png:
      return encode_png(image);
    case Encoding::jpeg:
      return encode_jpeg(image, jpeg);
    case Encoding::raw:
    case Encoding::zstd:
      break;
    case Encoding::webp:
    case Encoding::bmp:
    case Encoding::tiff:
      DTRAIN_CHECK(false, "this kind of image is read only");
  }
  return encode_pixels(image, encoding);
}

void check_shape(const StoredShape& shape, ByteView payload, std::string_view kind) {
  const auto [c, h, w] = shape;
  if (h == 0 || w == 0 || (c != 1 && c != 3)) {
    throw DataError(fmt::format("{}: no image has {} channels, {} rows and {} columns", kind, c, h, w));
  }
  if (h > kMaxPixels || w > kMaxPixels || h * w > kMaxPixels) {
    throw DataError(fmt::format("{}: {} x {} pixels are more than the {} that dtrain accepts", kind, w, h, kMaxPixels));
  }
  if (h * w > payload.size() * kMaxPixelsPerByte) {
    throw DataError(fmt::format("{}: {} bytes cannot hold {} x {} pixels", kind, payload.size(), w, h));
  }
}

void shape_image(Image& out, const StoredShape& shape, ByteView payload, std::string_view kind) {
  check_shape(shape, payload, kind);
  out.c = static_cast<int>(shape.c);
  out.h = static_cast<int>(shape.h);
  out.w = static_cast<int>(shape.w);
  out.pixels.resize(shape.c * shape.h * shape.w);
}

}  // namespace dtrain::data
