#include "jpeg_decoder.hpp"

#include <algorithm>
#include <vector>

#include "jpeg_errors.hpp"
#include "jpeg_scan.hpp"

namespace dtrain::data {
namespace {

// A progressive file of a few bytes can ask for hours: more scans than any encoder makes are refused.
constexpr int kMostScans = 500;

// Columns beside the wanted ones that the smoothing of colours looks at.
constexpr int kMargin = 8;

void watch_scans(j_common_ptr codec) {
  const auto* jpeg = reinterpret_cast<j_decompress_ptr>(codec);
  if (jpeg->input_scan_number <= kMostScans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(codec->err);
  std::snprintf(errors->message, sizeof errors->message, "more than %d scans", kMostScans);
  std::longjmp(errors->jump, 1);
}

J_COLOR_SPACE colour_space(JpegPixels pixels) {
  switch (pixels) {
    case JpegPixels::grey:
      return JCS_GRAYSCALE;
    case JpegPixels::rgb:
      return JCS_EXT_RGB;
    case JpegPixels::rgbx:
      return JCS_EXT_RGBX;
    case JpegPixels::inks:
      break;
  }
  return JCS_CMYK;
}

}  // namespace

struct JpegDecoder::State {
  JpegErrors errors;
  jpeg_decompress_struct jpeg{};
  jpeg_progress_mgr progress{};
  JpegScan scan;
  JDIMENSION left = 0, columns = 0;
  std::vector<std::uint8_t> unwanted;  // a row to be passed over

  // One after another, as long as libjpeg cannot jump over them.
  bool in_one_scan() { return !jpeg_has_multiple_scans(&jpeg); }
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.jpeg.err = &state.errors.manager;
  state.errors.guard([&] { jpeg_create_decompress(&state.jpeg); });
  state.progress.progress_monitor = watch_scans;
  state.jpeg.progress = &state.progress;
}

JpegDecoder::~JpegDecoder() { jpeg_destroy_decompress(&state_->jpeg); }

void JpegDecoder::open(ByteView payload) {
  State& state = *state_;
  state.errors.guard([&] {
    jpeg_abort_decompress(&state.jpeg);
    jpeg_mem_src(&state.jpeg, reinterpret_cast<const unsigned char*>(payload.data()), payload.size());
    jpeg_read_header(&state.jpeg, TRUE);
  });
}

int JpegDecoder::h() const { return static_cast<int>(state_->jpeg.image_height); }
int JpegDecoder::w() const { return static_cast<int>(state_->jpeg.image_width); }
bool JpegDecoder::is_grey() const { return state_->jpeg.jpeg_color_space == JCS_GRAYSCALE; }
bool JpegDecoder::has_inks() const {
  return state_->jpeg.jpeg_color_space == JCS_CMYK || state_->jpeg.jpeg_color_space == JCS_YCCK;
}
int JpegDecoder::left() const { return static_cast<int>(state_->left); }
int JpegDecoder::columns() const { return static_cast<int>(state_->columns); }

void JpegDecoder::begin(JpegPixels pixels, const JpegPart& part) {
  State& state = *state_;
  jpeg_decompress_struct& jpeg = state.jpeg;
  jpeg.out_color_space = colour_space(pixels);
  jpeg.scale_num = 1;
  jpeg.scale_denom = static_cast<unsigned>(part.scale);
  jpeg.dct_method = JDCT_ISLOW;
  state.errors.guard([&] {
    jpeg_start_decompress(&jpeg);
    state.scan.take_over(jpeg);
  });
  state.left = 0;
  state.columns = jpeg.output_width;
  const bool narrower = part.left > 0 || part.right < static_cast<int>(jpeg.output_width);
  if (narrower && state.in_one_scan()) {
    state.left = static_cast<JDIMENSION>(std::max(0, part.left - kMargin));
    state.columns = std::min(jpeg.output_width, static_cast<JDIMENSION>(part.right + kMargin)) - state.left;
    state.errors.guard([&] { jpeg_crop_scanline(&jpeg, &state.left, &state.columns); });
    state.scan.keep_columns(jpeg, state.left, state.columns);
  }
  if (part.top == 0) return;
  if (state.in_one_scan()) {
    state.errors.guard([&] { jpeg_skip_scanlines(&jpeg, static_cast<JDIMENSION>(part.top)); });
  } else {
    state.unwanted.resize(std::size_t{state.columns} * static_cast<std::size_t>(jpeg.output_components));
    for (int y = 0; y < part.top; ++y) next_row(state.unwanted.data());
  }
}

void JpegDecoder::next_row(std::uint8_t* out) {
  State& state = *state_;
  state.errors.guard([&] { jpeg_read_scanlines(&state.jpeg, &out, 1); });
}

void JpegDecoder::close(bool whole) {
  State& state = *state_;
  if (whole) {
    state.unwanted.resize(std::size_t{state.columns} * static_cast<std::size_t>(state.jpeg.output_components));
    while (state.jpeg.output_scanline < state.jpeg.output_height) next_row(state.unwanted.data());
  }
  state.errors.guard([&] {
    if (whole) {
      jpeg_finish_decompress(&state.jpeg);
    } else {
      jpeg_abort_decompress(&state.jpeg);
    }
  });
}

JpegDecoder& this_threads_jpeg_decoder() {
  thread_local JpegDecoder decoder;
  return decoder;
}

}  // namespace dtrain::data
