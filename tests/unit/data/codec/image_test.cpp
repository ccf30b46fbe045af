#include <gtest/gtest.h>
#include <zlib.h>

#include <dtrain/data/image.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

using Pixels = std::vector<std::uint8_t>;

// The page in man/ works through these 26 bytes.
const std::string kTwoPixels("DTPX\1\0\3\0\1\0\0\0\2\0\0\0\x1e\xfb\x2f\xb0\xff\x00\x00\x00\x80\xff", 26);

std::string golden(std::string_view name) { return read_file(Path(DTRAIN_TESTS_DIR) / "unit/data/golden" / name); }

Image decoded(std::string_view payload, int channels = kStoredChannels) {
  Image image;
  decode_image(bytes_of(payload), channels, image);
  return image;
}

// A smooth picture, so that JPEG stays near it.
Image ramp(int c) {
  Image image{c, 16, 24, {}};
  for (int i = 0; i < 16 * 24 * c; ++i) image.pixels.push_back(static_cast<std::uint8_t>(20 + i / c % 24 * 8));
  return image;
}

// Every pixel of the picture is this one.
void expect_flat(const Image& image, const Pixels& pixel, int tolerance = 0) {
  ASSERT_EQ(image.c, static_cast<int>(pixel.size()));
  ASSERT_EQ(image.pixels.size(), static_cast<std::size_t>(image.c * image.h * image.w));
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    ASSERT_NEAR(image.pixels[i], pixel[i % pixel.size()], tolerance) << "byte " << i;
  }
}

TEST(Pixels, HaveTheBytesOfTheManPage) {
  const Image image{3, 1, 2, {255, 0, 0, 0, 128, 255}};
  EXPECT_EQ(encode_image(image, Encoding::raw), kTwoPixels);
  EXPECT_EQ(decoded(kTwoPixels).pixels, image.pixels);
}

TEST(Pixels, ComeBackFromEveryLosslessEncoding) {
  for (Encoding encoding : {Encoding::raw, Encoding::zstd, Encoding::png}) {
    for (int c : {1, 3}) {
      const std::string payload = encode_image(ramp(c), encoding);
      const Image image = decoded(payload);
      EXPECT_EQ(image.c, c);
      EXPECT_EQ(image.h, 16);
      EXPECT_EQ(image.w, 24);
      EXPECT_EQ(image.pixels, ramp(c).pixels) << encoding_name(encoding);
      EXPECT_EQ(detect_encoding(bytes_of(payload)), encoding);
    }
  }
}

TEST(Pixels, NoticeEveryFlippedBit) {
  for (std::size_t bit = 0; bit < kTwoPixels.size() * 8; ++bit) {
    std::string bad = kTwoPixels;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROW(decoded(bad), DataError) << "bit " << bit;
  }
}

// With one more chunk it is not flat any more, and libspng decodes it.
std::string with_comment(std::string png) {
  const std::string chunk = "tEXta" + std::string(1, '\0') + "b";
  const auto crc = static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size())));
  std::string bytes{0, 0, 0, 3};
  bytes += chunk;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(crc >> shift & 255);
  return png.insert(png.size() - 12, bytes);
}

TEST(FlatPng, IsReadTheSameByLibspng) {
  for (const int c : {1, 3}) {
    const std::string payload = encode_flat_png(ramp(c));
    EXPECT_EQ(detect_encoding(bytes_of(payload)), Encoding::png);
    EXPECT_EQ(decoded(payload).pixels, ramp(c).pixels);
    EXPECT_EQ(decoded(payload).c, c);
    EXPECT_EQ(decoded(with_comment(payload)).pixels, ramp(c).pixels);
  }
}

TEST(FlatPng, NoticesEveryFlippedBitAndMissingByte) {
  constexpr std::size_t kEnd = 12;  // a chunk on which no pixel hangs
  const std::string payload = encode_flat_png({3, 2, 2, Pixels(12, 77)});
  for (std::size_t bit = 0; bit < (payload.size() - kEnd) * 8; ++bit) {
    std::string bad = payload;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROW(decoded(bad), DataError) << "bit " << bit;
  }
  for (std::size_t size = 0; size < payload.size() - kEnd; ++size)
    EXPECT_THROW(decoded(payload.substr(0, size)), DataError) << size;
}

TEST(FlatPng, OfALargeImageIsCompressed) {
  const Image image{3, 200, 200, Pixels(120000, 9)};
  EXPECT_EQ(encode_flat_png(image), encode_image(image, Encoding::png));
  const Image most{1, 1, 65534, Pixels(65534, 7)};
  EXPECT_GT(encode_flat_png(most).size(), 65534u);
  EXPECT_EQ(decoded(encode_flat_png(most)).pixels, most.pixels);
}

TEST(DecodeImage, NamesKindsThatItDoesNotRead) {
  const auto complaint = [](const std::string& payload) -> std::string {
    try {
      decoded(payload);
    } catch (const DataError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(complaint("GIF89a"), "the image is GIF; dtrain reads JPEG, PNG, WebP, BMP and TIFF and its own raw pixels");
  EXPECT_EQ(complaint("BMI and other numbers of physicians"), "no image of a kind that dtrain reads: unknown magic");
  EXPECT_EQ(complaint(std::string(3072, 'x')),
            "no image of a kind that dtrain reads: if its 3072 bytes are the pixels of 32 x 32 x 3, nothing says so");
  EXPECT_EQ(complaint(std::string(3071, 'x')), "no image of a kind that dtrain reads: unknown magic");
}

TEST(DecodeImage, ReadsFilesOfOtherPrograms) {
  for (const char* name : {"still.webp", "still_alpha.webp", "rgb.bmp", "palette.bmp", "plain.tif", "lzw.tif",
                           "deflate.tif", "packbits.tif"}) {
    const Image image = decoded(golden(name));
    ASSERT_EQ(image.c, 3);
    ASSERT_EQ(image.h, 4);
    ASSERT_EQ(image.w, 5);
    for (int y = 0; y < 4; ++y) {
      for (int x = 0; x < 5; ++x) {
        const auto* pixel = &image.pixels[static_cast<std::size_t>(3 * (5 * y + x))];
        EXPECT_EQ((std::vector<int>{pixel[0], pixel[1], pixel[2]}), (std::vector<int>{40 * x, 60 * y, 128})) << name;
      }
    }
  }
  EXPECT_EQ(decoded(golden("still.webp"), 1).c, 1);
}

TEST(DecodeImage, NoticesAMissingByteOfBmpAndTiff) {
  for (const char* name : {"rgb.bmp", "palette.bmp", "plain.tif", "lzw.tif", "deflate.tif", "packbits.tif"}) {
    const std::string payload = golden(name);
    for (std::size_t size = 0; size + 8 < payload.size(); ++size) {  // the last bytes fill a row, or are a checksum
      EXPECT_THROW(decoded(payload.substr(0, size)), DataError) << name << ' ' << size;
    }
  }
}

std::string little_endian(std::uint32_t value, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i & 0xff);
  return bytes;
}

std::string deflated(const std::string& content) {
  uLongf size = compressBound(content.size());
  std::string packed(size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(content.data()),
           content.size());
  return packed.substr(0, size);
}

// A grey TIFF whose strips or tiles are all the same bytes. `numbers`: tags with one number each.
std::string tiff_of(std::vector<std::pair<std::uint32_t, std::uint32_t>> numbers, bool tiled, std::uint32_t parts,
                    const std::string& packed) {
  constexpr std::uint32_t kHead = 8, kShort = 2, kLong = 4, kEntry = 12;
  for (const auto& grey : {std::pair{258u, 8u}, {259u, 8u}, {262u, 1u}}) numbers.push_back(grey);
  const auto entries = static_cast<std::uint32_t>(numbers.size()) + 2;
  const std::uint32_t content = kHead + kShort + entries * kEntry + kLong;
  const std::uint32_t arrays = content + static_cast<std::uint32_t>(packed.size());
  const auto entry = [&](std::uint32_t tag, std::uint32_t count, std::uint32_t value) {
    return little_endian(tag, 2) + little_endian(kLong, 2) + little_endian(count, 4) + little_endian(value, 4);
  };
  std::string tiff = "II" + little_endian(42, 2) + little_endian(kHead, 4) + little_endian(entries, 2), offsets, sizes;
  for (const auto& [tag, value] : numbers) tiff += entry(tag, 1, value);
  const auto size = static_cast<std::uint32_t>(packed.size());
  tiff += entry(tiled ? 324 : 273, parts, parts == 1 ? content : arrays);
  tiff += entry(tiled ? 325 : 279, parts, parts == 1 ? size : arrays + parts * kLong);
  for (std::uint32_t i = 0; i < parts; ++i) {
    offsets += little_endian(content, 4);
    sizes += little_endian(size, 4);
  }
  return tiff + little_endian(0, 4) + packed + offsets + sizes;
}

TEST(Tiff, TilesAndStripsMayBeLargerThanThePicture) {
  const std::string tile = deflated(std::string(256 * 256, 7)), rows = deflated(std::string(20, 7));
  const Pixels expected(20, 7);
  EXPECT_EQ(decoded(tiff_of({{256, 5}, {257, 4}, {322, 256}, {323, 256}}, true, 1, tile)).pixels, expected);
  EXPECT_EQ(decoded(tiff_of({{256, 5}, {257, 4}, {278, UINT32_MAX}}, false, 1, rows)).pixels, expected);
}

TEST(Tiff, AnOrientationWithoutAMeaningIsUpright) {
  const auto sides = [](std::uint32_t orientation) {
    const std::string rows = deflated(std::string(20, 7));
    const Image image = decoded(tiff_of({{256, 5}, {257, 4}, {274, orientation}, {278, 4}}, false, 1, rows));
    return std::pair(image.w, image.h);
  };
  EXPECT_EQ(sides(6), (std::pair(4, 5)));
  for (const std::uint32_t orientation : {0u, 9u, 65535u}) EXPECT_EQ(sides(orientation), (std::pair(5, 4)));
}

TEST(Tiff, RefusesPartsThatTakeLongForFewPixels) {
  const std::string column = deflated(std::string(1u << 24, 7));
  expect_error(
      [&] {
        decoded(tiff_of({{256, 64}, {257, 1}, {322, 1}, {323, 1u << 24}}, true, 64, column));
      },
      "TIFF: its strips or tiles are much larger than the picture");
  // Behind zlib's header 20,000 stored blocks without content, then the pixel.
  std::string blocks = deflated("7").substr(0, 2);
  for (int i = 0; i < 20'000; ++i) blocks += std::string("\0\0\0\xff\xff", 5);
  blocks += std::string(
      "\1\1\0\xfe\xff"
      "7\0\x38\0\x38",
      10);
  expect_error(
      [&] {
        decoded(tiff_of({{256, 3}, {257, 1}, {322, 1}, {323, 1}}, true, 3, blocks));
      },
      "TIFF: a deflated part is damaged or cut short");
}

TEST(WebP, IsRefusedWhereItIsDamagedOrMoves) {
  const std::string payload = golden("still.webp");
  for (std::size_t size = 12; size + 1 < payload.size(); size += 3) {
    EXPECT_THROW(decoded(payload.substr(0, size)), DataError) << size;
  }
  try {
    decoded(golden("animated.webp"));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "WebP: is animated");
  }
}

TEST(Pixels, NoticeEveryMissingByte) {
  for (Encoding encoding : {Encoding::raw, Encoding::zstd, Encoding::png}) {
    const std::string payload = encode_image(ramp(3), encoding);
    for (std::size_t size = 0; size < payload.size(); size += 5) {
      EXPECT_THROW(decoded(payload.substr(0, size)), DataError) << encoding_name(encoding) << ' ' << size;
    }
  }
}

TEST(Pixels, NameAWrongChecksum) {
  std::string bad = kTwoPixels;
  bad.back() ^= 1;
  expect_error([&] { decoded(bad); }, "pixels: their checksum is wrong");
}

TEST(Jpeg, StaysNearTheImage) {
  for (int c : {1, 3}) {
    const Image image = decoded(encode_image(ramp(c), Encoding::jpeg));
    ASSERT_EQ(image.c, c);
    for (std::size_t i = 0; i < image.pixels.size(); ++i) EXPECT_NEAR(image.pixels[i], ramp(c).pixels[i], 6);
  }
}

TEST(Jpeg, ReadsProgressiveGreyAndCmyk) {
  expect_flat(decoded(golden("colour_progressive.jpg")), {200, 100, 50}, 2);
  expect_flat(decoded(golden("grey.jpg")), {77}, 1);
  expect_flat(decoded(golden("grey.jpg"), 3), {77, 77, 77}, 1);
  expect_flat(decoded(golden("cmyk.jpg")), {200, 100, 50}, 2);
  expect_flat(decoded(golden("cmyk.jpg"), 1), {124}, 2);
}

TEST(Jpeg, NamesATruncatedFile) {
  const std::string payload = encode_image(ramp(3), Encoding::jpeg);
  expect_error([&] { decoded(payload.substr(0, payload.size() - 40)); }, "JPEG: Premature end of JPEG file");
  expect_error([&] { decoded(payload.substr(0, 20)); }, "JPEG: ");
}

TEST(Jpeg, AcceptsStrayBytesBeforeAMarker) {
  std::string payload = encode_image(ramp(3), Encoding::jpeg);
  payload.insert(payload.size() - 2, "stray");
  EXPECT_EQ(decoded(payload).pixels, decoded(encode_image(ramp(3), Encoding::jpeg)).pixels);
}

TEST(Png, ReadsPaletteAlphaAndSixteenBits) {
  for (const char* name : {"palette.png", "alpha.png", "colour16.png"}) {
    SCOPED_TRACE(name);
    expect_flat(decoded(golden(name)), {200, 100, 50});
  }
  for (const char* name : {"grey_alpha.png", "grey16.png"}) {
    SCOPED_TRACE(name);
    expect_flat(decoded(golden(name)), {77});
  }
}

TEST(Png, NamesAFlippedBit) {
  std::string payload = golden("alpha.png");
  payload[payload.size() - 20] ^= 4;
  expect_error([&] { decoded(payload); }, "PNG: ");
}

TEST(Image, TurnsGreyIntoColourAndColourIntoLuma) {
  EXPECT_EQ(decoded(encode_image({1, 1, 2, {7, 200}}, Encoding::raw), 3).pixels, (Pixels{7, 7, 7, 200, 200, 200}));
  EXPECT_EQ(decoded(encode_image({3, 1, 2, {9, 9, 9, 255, 0, 0}}, Encoding::raw), 1).pixels, (Pixels{9, 76}));
}

TEST(Image, NamesAnUnknownPayload) {
  expect_error([&] { decoded("PIXELS"); }, "no image of a kind that dtrain reads");
  expect_error([&] { decoded(""); }, "the record has no image");
}

TEST(Image, RefusesASizeThatWouldTakeAllMemory) {
  std::string payload = kTwoPixels;
  payload.replace(8, 8, "\xff\xff\xff\xff\xff\xff\xff\xff");
  expect_error([&] { decoded(payload); }, "pixels: 4294967295 x 4294967295 pixels are more than");
}

TEST(Image, RefusesASizeThatItsBytesCannotFill) {
  for (const char* name : {"grey.jpg", "alpha.png"}) {
    std::string payload = golden(name);
    const bool jpeg = detect_encoding(bytes_of(payload)) == Encoding::jpeg;
    const std::size_t height = jpeg ? payload.find("\xff\xc0") + 5 : 20;
    payload.replace(height, jpeg ? 4 : 8, jpeg ? "\xf0\xf0\x10\x10" : std::string("\0\0\x3f\0\0\0\x3f\0", 8));
    expect_error([&] { decoded(payload); }, jpeg ? "bytes cannot hold 4112 x 61680 pixels" : "PNG: ");
  }
}

TEST(Encoding, IsFoundByItsName) {
  for (const std::string& name : encoding_names()) EXPECT_EQ(encoding_name(*parse_encoding(name)), name);
  EXPECT_FALSE(parse_encoding("gif"));
}

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

// The PNG with a text of so many bytes, packed, before its pixels.
std::string with_text(std::string png, std::size_t size) {
  const std::string text(size, ' ');
  uLongf packed_size = compressBound(size);
  std::string packed(packed_size, '\0');
  compress(reinterpret_cast<Bytef*>(packed.data()), &packed_size, reinterpret_cast<const Bytef*>(text.data()), size);
  const std::string chunk = "zTXt" + std::string("note\0\0", 6) + packed.substr(0, packed_size);
  const auto crc = crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
  constexpr std::size_t kBehindHeader = 8 + 25;
  return png.insert(kBehindHeader, big_endian(static_cast<std::uint32_t>(chunk.size() - 4)) + chunk +
                                       big_endian(static_cast<std::uint32_t>(crc)));
}

TEST(Png, OfDtrainNamesItAsTheSoftware) {
  for (const int c : {1, 3}) {
    const std::string own = encode_own_png(ramp(c));
    EXPECT_EQ(decoded(own).pixels, ramp(c).pixels);
    EXPECT_TRUE(is_own_png(bytes_of(own.substr(0, 64))));
    EXPECT_NE(own.find(std::string("tEXtSoftware\0dtrain", 19)), own.npos);
    EXPECT_FALSE(is_own_png(bytes_of(encode_image(ramp(c), Encoding::png))));
    EXPECT_FALSE(is_own_png(bytes_of(own.substr(0, 50))));
  }
}

TEST(Png, RefusesATextThatUnpacksToAllMemory) {
  const std::string png = encode_image(ramp(3), Encoding::png);
  EXPECT_EQ(decoded(with_text(png, 1 << 20)).pixels, ramp(3).pixels);
  expect_error([&] { decoded(with_text(png, 64u << 20)); }, "PNG: ");
}

TEST(Image, TakesAJpegWithHeadersThatAreOddAndHarmless) {
  const std::string good = encode_image({3, 8, 8, Pixels(192, 90)}, Encoding::jpeg);
  const std::size_t name = good.find("JFIF");
  constexpr std::size_t kMarkerAt = 2, kMarkerBytes = 2, kVersionBehind = 5;
  ASSERT_EQ(name, kMarkerAt + kMarkerBytes + 2);
  std::string version = good;
  version[name + kVersionBehind] = 3;
  std::string transform = good;
  const std::size_t segment = kMarkerBytes + static_cast<unsigned char>(good[5]);
  transform.replace(kMarkerAt, segment,
                    std::string("\xff\xee\0\x0e"
                                "Adobe\0\x64\0\0\0\0\x07",
                                16));
  for (const std::string& odd : {version, transform}) EXPECT_EQ(decoded(odd).pixels, decoded(good).pixels);
}

}  // namespace
}  // namespace dtrain::data
