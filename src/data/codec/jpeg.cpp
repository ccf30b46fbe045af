#include <algorithm>
#include <cstdlib>

#include "codecs.hpp"
#include "jpeg_decoder.hpp"
#include "jpeg_errors.hpp"

namespace dtrain::data {
namespace {

// Four inks as Adobe's programs write them, 255 meaning none, to RGB.
void inks_to_rgb(const std::uint8_t* inks, int count, std::uint8_t* rgb) {
  for (int i = 0; i < count; ++i, inks += 4, rgb += 3) {
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<std::uint8_t>(inks[c] * inks[3] / 255);
  }
}

struct Compressor {
  JpegErrors errors;
  jpeg_compress_struct jpeg{};
  unsigned char* bytes = nullptr;
  unsigned long size = 0;

  Compressor() {
    jpeg.err = &errors.manager;
    errors.guard([&] { jpeg_create_compress(&jpeg); });
  }
  Compressor(const Compressor&) = delete;
  ~Compressor() {
    jpeg_destroy_compress(&jpeg);
    std::free(bytes);
  }
};

void compress(Compressor& out, const Image& image, const JpegOptions& options) {
  jpeg_compress_struct& jpeg = out.jpeg;
  jpeg_mem_dest(&jpeg, &out.bytes, &out.size);
  jpeg.image_width = static_cast<JDIMENSION>(image.w);
  jpeg.image_height = static_cast<JDIMENSION>(image.h);
  jpeg.input_components = image.c;
  jpeg.in_color_space = image.c == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  jpeg.dct_method = JDCT_ISLOW;
  if (image.c == 3 && options.full_colour) jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&jpeg, TRUE);
  const std::ptrdiff_t row_bytes = std::ptrdiff_t{image.w} * image.c;
  while (jpeg.next_scanline < jpeg.image_height) {
    auto* row = const_cast<JSAMPLE*>(image.pixels.data() + row_bytes * jpeg.next_scanline);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
}

}  // namespace

void decode_jpeg(ByteView payload, int channels, Image& out) {
  JpegDecoder& decoder = this_threads_jpeg_decoder();
  decoder.open(payload);
  const bool inks = decoder.has_inks();
  if (channels == kStoredChannels) channels = decoder.is_grey() ? 1 : 3;
  if (inks) channels = 3;
  shape_image(out,
              {static_cast<unsigned>(channels), static_cast<unsigned>(decoder.h()), static_cast<unsigned>(decoder.w())},
              payload, "JPEG");
  const auto pixels = inks ? JpegPixels::inks : (channels == 1 ? JpegPixels::grey : JpegPixels::rgb);
  decoder.begin(pixels, {.bottom = out.h, .right = out.w});
  std::vector<std::uint8_t> row(inks ? std::size_t{4} * static_cast<std::size_t>(out.w) : 0);
  const std::size_t row_bytes = static_cast<std::size_t>(out.w) * static_cast<std::size_t>(out.c);
  std::uint8_t* to = out.pixels.data();
  for (int y = 0; y < out.h; ++y, to += row_bytes) {
    decoder.next_row(inks ? row.data() : to);
    if (inks) inks_to_rgb(row.data(), out.w, to);
  }
  decoder.close(true);
}

std::string encode_jpeg(const Image& image, const JpegOptions& options) {
  Compressor compressor;
  compressor.errors.guard([&] { compress(compressor, image, options); });
  return {reinterpret_cast<const char*>(compressor.bytes), compressor.size};
}

}  // namespace dtrain::data
