#include <gtest/gtest.h>
#include <stdio.h>

#include <jerror.h>
#include <jpeglib.h>
#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>

#include "data/codec/jpeg_decoder.hpp"

namespace dtrain::data {
namespace {

// The defaults make more bytes than libjpeg is left to decode.
struct Kind {
  int w = 131, h = 107, components = 3, across = 2, down = 2;  // across, down: how many pixels of a colour's sample
  int quality = 95, restart_units = 0;
  bool fitted = false, arithmetic = false, progressive = false, last_tables = false;
  double noise = 60;
};

std::vector<std::uint8_t> picture_of(const Kind& kind) {
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, kind.noise);
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < kind.h; ++y) {
    for (int x = 0; x < kind.w; ++x) {
      for (int c = 0; c < kind.components; ++c) {
        const double value = 128 + 90 * std::sin(0.07 * x * (c + 1)) * std::cos(0.05 * y) + noise(random);
        pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)));
      }
    }
  }
  return pixels;
}

std::string encoded(const Kind& kind) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = static_cast<JDIMENSION>(kind.w);
  jpeg.image_height = static_cast<JDIMENSION>(kind.h);
  jpeg.input_components = kind.components;
  constexpr J_COLOR_SPACE kSpaces[] = {JCS_UNKNOWN, JCS_GRAYSCALE, JCS_UNKNOWN, JCS_RGB, JCS_CMYK};
  jpeg.in_color_space = kSpaces[kind.components];
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, kind.quality, TRUE);
  jpeg.comp_info[0].h_samp_factor = kind.across;
  jpeg.comp_info[0].v_samp_factor = kind.down;
  jpeg.optimize_coding = kind.fitted ? TRUE : FALSE;
  jpeg.restart_interval = static_cast<unsigned>(kind.restart_units);
  jpeg.arith_code = kind.arithmetic ? TRUE : FALSE;
  if (kind.progressive) jpeg_simple_progression(&jpeg);
  for (int i = 0; kind.last_tables && i < jpeg.num_components; ++i) {
    jpeg.comp_info[i].dc_tbl_no = 2 + i % 2;
    jpeg.comp_info[i].ac_tbl_no = 3 - i % 2;
  }
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<std::uint8_t> pixels = picture_of(kind);
  while (jpeg.next_scanline < jpeg.image_height) {
    JSAMPLE* row = pixels.data() + static_cast<std::size_t>(jpeg.next_scanline) * kind.w * kind.components;
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  jpeg_destroy_compress(&jpeg);
  std::free(bytes);
  return file;
}

using Decoded = std::optional<std::vector<std::uint8_t>>;  // nullopt: damaged

struct StrictErrors {
  jpeg_error_mgr manager{};
  std::jmp_buf jump;
};

void leave(j_common_ptr jpeg) { std::longjmp(reinterpret_cast<StrictErrors*>(jpeg->err)->jump, 1); }
void leave_for_warnings(j_common_ptr jpeg, int level) {
  if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA) leave(jpeg);
}

J_COLOR_SPACE space_of(JpegPixels pixels) {
  if (pixels == JpegPixels::grey) return JCS_GRAYSCALE;
  return pixels == JpegPixels::inks ? JCS_CMYK : JCS_EXT_RGB;
}

std::size_t bytes_of_pixel(JpegPixels pixels) { return std::min<std::size_t>(static_cast<std::size_t>(pixels), 4); }

void read_rows(jpeg_decompress_struct& jpeg, const JpegPart& part, std::vector<std::uint8_t>& bytes) {
  jpeg_start_decompress(&jpeg);
  JDIMENSION left = 0, columns = jpeg.output_width;
  if (part.left > 0 || part.right < static_cast<int>(jpeg.output_width)) {
    left = static_cast<JDIMENSION>(std::max(0, part.left - 8));
    columns = std::min(jpeg.output_width, static_cast<JDIMENSION>(part.right + 8)) - left;
    jpeg_crop_scanline(&jpeg, &left, &columns);
  }
  if (part.top > 0) jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(part.top));
  const std::size_t row_bytes = std::size_t{columns} * static_cast<std::size_t>(jpeg.output_components);
  bytes.resize(row_bytes * static_cast<std::size_t>(part.bottom - part.top));
  for (JSAMPLE* row = bytes.data(); row < bytes.data() + bytes.size(); row += row_bytes) {
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  if (part.bottom == static_cast<int>(jpeg.output_height)) jpeg_finish_decompress(&jpeg);
}

// False: damaged.
bool read_by_libjpeg(const std::string& file, const JpegPart& part, JpegPixels pixels,
                     std::vector<std::uint8_t>& bytes) {
  jpeg_decompress_struct jpeg{};
  StrictErrors errors;
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave;
  errors.manager.emit_message = leave_for_warnings;
  jpeg_create_decompress(&jpeg);
  const bool whole = setjmp(errors.jump) == 0;
  if (whole) {
    jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = space_of(pixels);
    jpeg.scale_denom = static_cast<unsigned>(part.scale);
    read_rows(jpeg, part, bytes);
  }
  jpeg_destroy_decompress(&jpeg);
  return whole;
}

// What libjpeg makes of it by itself.
Decoded libjpegs(const std::string& file, const JpegPart& part, JpegPixels pixels = JpegPixels::rgb) {
  std::vector<std::uint8_t> bytes;
  if (!read_by_libjpeg(file, part, pixels, bytes)) return std::nullopt;
  return bytes;
}

Decoded ours(const std::string& file, const JpegPart& part, JpegPixels pixels = JpegPixels::rgb,
             std::string* why = nullptr) {
  JpegDecoder& decoder = this_threads_jpeg_decoder();
  try {
    decoder.open(bytes_of(file));
    decoder.begin(pixels, part);
    const std::size_t row_bytes = static_cast<std::size_t>(decoder.columns()) * bytes_of_pixel(pixels);
    std::vector<std::uint8_t> bytes(row_bytes * static_cast<std::size_t>(part.bottom - part.top));
    for (std::uint8_t* row = bytes.data(); row < bytes.data() + bytes.size(); row += row_bytes) decoder.next_row(row);
    decoder.close(part.bottom == at_scale(decoder.h(), part.scale));
    return bytes;
  } catch (const DataError& error) {
    if (why) *why = error.what();
    return std::nullopt;
  }
}

std::string why_refused(const std::string& file, const JpegPart& part) {
  std::string why;
  EXPECT_FALSE(ours(file, part, JpegPixels::rgb, &why));
  return why;
}

JpegPart whole_of(const Kind& kind, int scale = 1) {
  return {.scale = scale, .bottom = at_scale(kind.h, scale), .right = at_scale(kind.w, scale)};
}

void expect_same_part(const std::string& file, const JpegPart& part, JpegPixels pixels) {
  const Decoded theirs = libjpegs(file, part, pixels);
  ASSERT_TRUE(theirs);
  EXPECT_TRUE(ours(file, part, pixels) == theirs) << "scale " << part.scale << ", rows " << part.top << " to "
                                                  << part.bottom << ", columns " << part.left << " to " << part.right;
}

// Whole and in parts.
void expect_same(const Kind& kind, JpegPixels pixels = JpegPixels::rgb) {
  const std::string file = encoded(kind);
  ASSERT_GT(file.size(), 5000U);
  std::mt19937 random(3);
  for (const int scale : {1, 2, 4, 8}) {
    const JpegPart whole = whole_of(kind, scale);
    expect_same_part(file, whole, pixels);
    for (int i = 0; i < 8 && !kind.progressive; ++i) {  // parts of progressive files have whole rows
      const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
      JpegPart part{.scale = scale, .top = between(0, whole.bottom - 1), .left = between(0, whole.right - 1)};
      part.bottom = between(part.top + 1, whole.bottom);
      part.right = between(part.left + 1, whole.right);
      expect_same_part(file, part, pixels);
    }
  }
}

TEST(JpegScan, HasLibjpegsPixels) {
  for (const int quality : {10, 50, 90, 100}) {
    for (const bool fitted : {false, true}) {
      for (const double noise : {40.0, 120.0}) {
        SCOPED_TRACE(testing::Message() << "quality " << quality << ", noise " << noise);
        expect_same({.w = 423, .h = 277, .quality = quality, .fitted = fitted, .noise = noise});
      }
    }
  }
}

TEST(JpegScan, KnowsSizesAndSamplings) {
  for (const auto& [across, down] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}, {4, 1}, {3, 1}}) {
    for (const auto& [w, h] : {std::pair(1, 5000), {7, 1901}, {128, 96}, {1900, 9}, {97, 133}}) {
      SCOPED_TRACE(testing::Message() << across << "x" << down << " of " << w << "x" << h);
      expect_same({.w = w, .h = h, .across = across, .down = down});
      expect_same({.w = w, .h = h, .components = 1, .across = across, .down = down, .fitted = true});
    }
  }
}

TEST(JpegScan, KnowsOtherColours) {
  expect_same({}, JpegPixels::grey);
  expect_same({.components = 4}, JpegPixels::inks);
  expect_same({.components = 4, .across = 1, .down = 1, .fitted = true}, JpegPixels::inks);
}

TEST(JpegScan, KnowsAllTables) { expect_same({.fitted = true, .last_tables = true}); }

TEST(JpegScan, StartsAgainAtRestartMarkers) {
  for (const int units : {1, 2, 5, 9, 1000}) {
    SCOPED_TRACE(units);
    expect_same({.restart_units = units});
  }
}

TEST(JpegScan, LeavesOtherKindsToLibjpeg) {
  expect_same({.arithmetic = true});
  expect_same({.progressive = true});
}

TEST(JpegScan, PassesOverFillAndStrayBytes) {
  const Kind kind{.restart_units = 3};
  const std::string file = encoded(kind);
  const Decoded pixels = ours(file, whole_of(kind));
  const auto with = [&](std::size_t at, const std::string& more) {
    std::string changed = file;
    changed.insert(at, more);
    return ours(changed, whole_of(kind));
  };
  EXPECT_TRUE(with(file.find("\xFF\xD2"), "\xFF\xFF") == pixels);
  EXPECT_TRUE(with(file.size() - 2, "\xFF") == pixels);
  EXPECT_TRUE(with(file.size() - 2, "stray") == pixels);
  EXPECT_TRUE(with(file.find(std::string("\xFF\0", 2), file.find("\xFF\xDA")), "\xFF") == pixels);
  EXPECT_TRUE(with(file.size(), "stray") == pixels);
}

// Where libjpeg warns, a picture is refused; where it is not, it has libjpeg's pixels. libjpeg takes some unknown codes
// for zeros without a word, so more may be refused.
TEST(JpegScan, RefusesWhatIsDamaged) {
  std::mt19937 random(11);
  int refused = 0, accepted = 0;
  for (const int restart_units : {0, 3}) {
    const Kind kind{.restart_units = restart_units, .fitted = true};
    const std::string file = encoded(kind);
    const std::size_t scan = file.rfind("\xFF\xDA") + 14;
    for (int i = 0; i < 400; ++i) {
      std::string damaged = file;
      if (i % 4 == 0) damaged.resize(scan + random() % (file.size() - scan));
      if (i % 4 != 0) damaged[scan + random() % (file.size() - scan - 2)] ^= static_cast<char>(1 << random() % 8);
      const Decoded own = ours(damaged, whole_of(kind)), theirs = libjpegs(damaged, whole_of(kind));
      ++(own ? accepted : refused);
      EXPECT_TRUE(!own || own == theirs) << i << ", restart markers after " << restart_units;
    }
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(accepted, 100);
}

TEST(JpegScan, SaysWhatIsDamaged) {
  const Kind kind{.restart_units = 3};
  const std::string file = encoded(kind), half = file.substr(0, file.size() / 2);
  const JpegPart whole = whole_of(kind);
  EXPECT_EQ(why_refused(half + "\xFF\xD9", whole), "JPEG: Corrupt JPEG data: premature end of data segment");
  EXPECT_EQ(why_refused(half, whole), "JPEG: Premature end of JPEG file");
  std::string other = file;
  other[file.find("\xFF\xD1") + 1] = '\xD5';
  EXPECT_EQ(why_refused(other, whole), "JPEG: Corrupt JPEG data: found marker 0xd5 instead of RST1");
}

}  // namespace
}  // namespace dtrain::data
