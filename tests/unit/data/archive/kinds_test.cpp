// Pictures as cameras and programs write them.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>

#include <dtrain/data/augment.hpp>

#include "codec/bytes.hpp"
#include "codec/exif.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

Image slope(int h, int w) {
  Image image{3, h, w, {}};
  for (int i = 0; i < h * w; ++i) {
    for (int c = 0; c < 3; ++c) image.pixels.push_back(static_cast<std::uint8_t>((i % w * 3 + i / w * (c + 1)) % 256));
  }
  return image;
}

// A TIFF block that says so.
std::string orientation_block(int orientation) {
  std::string block("MM\0\x2a\0\0\0\x8\0\x1\x1\x12\0\x3\0\0\0\x1\0", 19);
  block += static_cast<char>(orientation);
  return block + std::string("\0\0\0\0\0\0", 6);
}

// The picture as `orientation` stores it, with an EXIF block that says so.
std::string tilted(int orientation) {
  std::string jpeg = encode_image(slope(16, 24), Encoding::jpeg);
  const std::string exif = std::string("Exif\0\0", 6) + orientation_block(orientation);
  const std::string length{'\0', static_cast<char>(exif.size() + 2)};
  return jpeg.insert(2, "\xff\xe1" + length + exif);
}

TEST(Exif, TurnsAPictureUpright) {
  const Image stored = [] {
    Image image;
    decode_image(bytes_of(tilted(1)), 3, image);
    return image;
  }();
  Image image;
  decode_image(bytes_of(tilted(6)), 3, image);  // the camera was held on its left side: turn it clockwise
  EXPECT_EQ(image.h, stored.w);
  EXPECT_EQ(image.w, stored.h);
  const auto pixel = [](const Image& of, int y, int x) {
    return of.pixels[static_cast<std::size_t>((y * of.w + x) * 3)];
  };
  EXPECT_EQ(pixel(image, 0, 0), pixel(stored, stored.h - 1, 0));
  EXPECT_EQ(pixel(image, 0, image.w - 1), pixel(stored, 0, 0));
  decode_image(bytes_of(tilted(8)), 3, image);
  EXPECT_EQ(pixel(image, 0, 0), pixel(stored, 0, stored.w - 1));
}

std::string tilted_png(int orientation) {
  constexpr std::size_t kBehindHeader = 33;
  const std::string chunk = "eXIf" + orientation_block(orientation);
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
  std::string framed;
  append(framed, __builtin_bswap32(static_cast<std::uint32_t>(chunk.size() - 4)));
  framed += chunk;
  append(framed, __builtin_bswap32(static_cast<std::uint32_t>(crc)));
  return encode_image(slope(16, 24), Encoding::png).insert(kBehindHeader, framed);
}

std::string tilted_webp(int orientation) {
  const std::string block = orientation_block(orientation);
  std::string webp = read_file(Path(DTRAIN_TESTS_DIR) / "unit/data/golden/still.webp") + "EXIF";
  append(webp, static_cast<std::uint32_t>(block.size()));
  webp += block;
  std::string size;
  append(size, static_cast<std::uint32_t>(webp.size() - 8));
  return webp.replace(4, 4, size);
}

TEST(Exif, TurnsPngAndWebpToo) {
  for (const auto tilt : {tilted_png, tilted_webp}) {
    Image upright, turned;
    decode_image(bytes_of(tilt(1)), 3, upright);
    decode_image(bytes_of(tilt(6)), 3, turned);
    turn_upright(upright, 6);
    EXPECT_EQ(turned.h, upright.h);
    EXPECT_EQ(turned.pixels, upright.pixels);
    const std::string whole = tilt(6);
    for (std::size_t size = 0; size < whole.size(); ++size) exif_orientation(bytes_of(whole.substr(0, size)));
    EXPECT_EQ(exif_orientation(bytes_of(whole)), 6);
  }
}

TEST(Exif, IsFoundBehindBytesThatFillUp) {
  for (const char* fill : {"\xff", "\xff\xff\xff"}) EXPECT_EQ(exif_orientation(bytes_of(tilted(6).insert(2, fill))), 6);
}

TEST(Exif, TakesNonsenseForUpright) {
  EXPECT_EQ(exif_orientation(bytes_of(tilted(9))), 1);
  for (std::size_t size = 0; size < 60; ++size) exif_orientation(bytes_of(tilted(6).substr(0, size)));
}

std::string golden(std::string_view name) { return read_file(Path(DTRAIN_TESTS_DIR) / "unit/data/golden" / name); }

// By whatever way the loader goes.
std::vector<float> loaded(const std::string& payload, const Augment& options, const nn::Shape& shape) {
  std::vector<float> out(static_cast<std::size_t>(shape.size()));
  Image scratch;
  decode_and_augment(bytes_of(payload), options, {1, 0, 3}, shape, scratch, out);
  return out;
}

std::vector<float> decoded_first(const std::string& payload, const Augment& options, const nn::Shape& shape) {
  Image image;
  decode_image(bytes_of(payload), shape.c, image);
  std::vector<float> out(static_cast<std::size_t>(shape.size()));
  augment(image, options, {1, 0, 3}, shape, out);
  return out;
}

// A JPEG may be decoded at half its size where that suffices, which is not quite what reducing it later gives.
double mean_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(static_cast<double>(a[i] - b[i]));
  return sum / static_cast<double>(a.size());
}

TEST(Kinds, OfPicturesAreAllLoadedAsTheyAreDecoded) {
  const std::vector<std::string> pictures = {golden("cmyk.jpg"),
                                             golden("grey.jpg"),
                                             golden("colour_progressive.jpg"),
                                             golden("colour16.png"),
                                             golden("grey16.png"),
                                             golden("palette.png"),
                                             golden("grey_alpha.png"),
                                             golden("alpha.png"),
                                             tilted(1),
                                             tilted(3),
                                             tilted(6),
                                             tilted(8)};
  for (const Augment& options :
       {Augment{.random_crop = true, .random_mirror = true}, Augment{.random_resized_crop = true},
        Augment{.resize = 12}, Augment{.pad_size = 2, .random_crop = true}}) {
    for (const nn::Shape& shape : {nn::Shape{3, 8, 6}, nn::Shape{1, 5, 7}}) {
      for (std::size_t i = 0; i < pictures.size(); ++i) {
        EXPECT_LT(mean_difference(loaded(pictures[i], options, shape), decoded_first(pictures[i], options, shape)), 2)
            << "picture " << i;
      }
    }
  }
}

}  // namespace
}  // namespace dtrain::data
