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

struct Kind {
  int w = 64, h = 48, components = 3, across = 2, down = 2;  // across, down: how many pixels of a colour's sample
  int quality = 90, restart_units = 0;
  bool fitted = false, arithmetic = false, progressive = false;
  double noise = 20;
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
  jpeg.in_color_space = kind.components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, kind.quality, TRUE);
  jpeg.comp_info[0].h_samp_factor = kind.across;
  jpeg.comp_info[0].v_samp_factor = kind.down;
  jpeg.optimize_coding = kind.fitted ? TRUE : FALSE;
  jpeg.restart_interval = static_cast<unsigned>(kind.restart_units);
  jpeg.arith_code = kind.arithmetic ? TRUE : FALSE;
  if (kind.progressive) jpeg_simple_progression(&jpeg);
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

bool read_rows(jpeg_decompress_struct& jpeg, const JpegPart& part, std::vector<std::uint8_t>& pixels) {
  jpeg_start_decompress(&jpeg);
  JDIMENSION left = 0, columns = jpeg.output_width;
  if (part.left > 0 || part.right < static_cast<int>(jpeg.output_width)) {
    left = static_cast<JDIMENSION>(std::max(0, part.left - 8));
    columns = std::min(jpeg.output_width, static_cast<JDIMENSION>(part.right + 8)) - left;
    jpeg_crop_scanline(&jpeg, &left, &columns);
  }
  if (part.top > 0) jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(part.top));
  const std::size_t row_bytes = std::size_t{columns} * 3;
  pixels.resize(row_bytes * static_cast<std::size_t>(part.bottom - part.top));
  for (JSAMPLE* row = pixels.data(); row < pixels.data() + pixels.size(); row += row_bytes) {
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  const bool whole = part.bottom == static_cast<int>(jpeg.output_height);
  if (whole) jpeg_finish_decompress(&jpeg);
  return whole;
}

// What libjpeg makes of it by itself.
Decoded libjpegs(const std::string& file, const JpegPart& part) {
  jpeg_decompress_struct jpeg{};
  StrictErrors errors;
  std::vector<std::uint8_t> pixels;
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = leave;
  errors.manager.emit_message = leave_for_warnings;
  jpeg_create_decompress(&jpeg);
  if (setjmp(errors.jump) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return std::nullopt;
  }
  jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = JCS_EXT_RGB;
  jpeg.scale_denom = static_cast<unsigned>(part.scale);
  read_rows(jpeg, part, pixels);
  jpeg_destroy_decompress(&jpeg);
  return pixels;
}

Decoded ours(const std::string& file, const JpegPart& part, std::string* why = nullptr) {
  JpegDecoder& decoder = this_threads_jpeg_decoder();
  try {
    decoder.open(bytes_of(file));
    decoder.begin(JpegPixels::rgb, part);
    const std::size_t row_bytes = static_cast<std::size_t>(decoder.columns()) * 3;
    std::vector<std::uint8_t> pixels(row_bytes * static_cast<std::size_t>(part.bottom - part.top));
    for (std::uint8_t* row = pixels.data(); row < pixels.data() + pixels.size(); row += row_bytes)
      decoder.next_row(row);
    decoder.close(part.bottom == at_scale(decoder.h(), part.scale));
    return pixels;
  } catch (const DataError& error) {
    if (why) *why = error.what();
    return std::nullopt;
  }
}

JpegPart whole_of(const Kind& kind, int scale = 1) {
  return {.scale = scale, .bottom = at_scale(kind.h, scale), .right = at_scale(kind.w, scale)};
}

// Whole and in parts.
void expect_same(const Kind& kind) {
  const std::string file = encoded(kind);
  std::mt19937 random(3);
  for (const int scale : {1, 2, 4, 8}) {
    const JpegPart whole = whole_of(kind, scale);
    EXPECT_TRUE(ours(file, whole) == libjpegs(file, whole)) << "scale " << scale;
    if (kind.progressive) continue;  // its parts have whole rows
    for (int i = 0; i < 8; ++i) {
      const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
      JpegPart part{.scale = scale, .top = between(0, whole.bottom - 1), .left = between(0, whole.right - 1)};
      part.bottom = between(part.top + 1, whole.bottom);
      part.right = between(part.left + 1, whole.right);
      EXPECT_TRUE(ours(file, part) == libjpegs(file, part))
          << "scale " << scale << ", rows " << part.top << " to " << part.bottom << ", columns " << part.left << " to "
          << part.right;
    }
  }
}

TEST(JpegScan, HasLibjpegsPixels) {
  for (const int quality : {3, 50, 90, 100}) {
    for (const bool fitted : {false, true}) {
      for (const double noise : {0.0, 20.0, 120.0}) {
        SCOPED_TRACE(quality);
        expect_same({.w = 131, .h = 77, .quality = quality, .fitted = fitted, .noise = noise});
      }
    }
  }
}

TEST(JpegScan, KnowsSizesAndSamplings) {
  for (const auto& [across, down] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}, {4, 1}}) {
    for (const auto& [w, h] : {std::pair(1, 1), {7, 9}, {8, 8}, {16, 17}, {90, 33}, {333, 20}}) {
      SCOPED_TRACE(testing::Message() << across << "x" << down << " of " << w << "x" << h);
      expect_same({.w = w, .h = h, .across = across, .down = down});
      expect_same({.w = w, .h = h, .components = 1, .across = across, .down = down, .fitted = true});
    }
  }
}

TEST(JpegScan, StartsAgainAtRestartMarkers) {
  for (const int units : {1, 2, 5, 9, 1000}) {
    SCOPED_TRACE(units);
    expect_same({.w = 131, .h = 77, .restart_units = units});
  }
}

TEST(JpegScan, LeavesOtherKindsToLibjpeg) {
  expect_same({.arithmetic = true});
  expect_same({.progressive = true});
}

// Whatever is damaged, a picture is refused exactly where libjpeg warns, and has its pixels where it does not.
TEST(JpegScan, JudgesDamageAsLibjpegDoes) {
  std::mt19937 random(11);
  int refused = 0;
  for (const int restart_units : {0, 3}) {
    const Kind kind{.restart_units = restart_units, .fitted = true};
    const std::string file = encoded(kind);
    const std::size_t scan = file.rfind("\xFF\xDA");
    for (int i = 0; i < 400; ++i) {
      std::string damaged = file;
      if (i % 2 == 0) {
        damaged.resize(scan + 14 + random() % (file.size() - scan - 14));
      } else {
        damaged[scan + 14 + random() % (file.size() - scan - 16)] ^= static_cast<char>(1 << random() % 8);
      }
      const JpegPart part = whole_of(kind);
      const Decoded own = ours(damaged, part);
      EXPECT_TRUE(own == libjpegs(damaged, part)) << i << ", restart markers after " << restart_units;
      refused += own ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 400);
}

TEST(JpegScan, SaysWhatIsDamaged) {
  const Kind kind{.restart_units = 3};
  const std::string file = encoded(kind);
  std::string why;
  EXPECT_FALSE(ours(file.substr(0, file.size() / 2) + "\xFF\xD9", whole_of(kind), &why));
  EXPECT_EQ(why, "JPEG: Corrupt JPEG data: premature end of data segment");
  EXPECT_FALSE(ours(file.substr(0, file.size() / 2), whole_of(kind), &why));
  EXPECT_EQ(why, "JPEG: Premature end of JPEG file");
  std::string other = file;
  other[file.find("\xFF\xD1") + 1] = '\xD5';
  EXPECT_FALSE(ours(other, whole_of(kind), &why));
  EXPECT_EQ(why, "JPEG: Corrupt JPEG data: found marker 0xd5 instead of RST1");
}

}  // namespace
}  // namespace dtrain::data
