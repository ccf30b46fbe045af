#include "window_pixels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "augment_steps.hpp"
#include "codec/codecs.hpp"
#include "codec/exif.hpp"
#include "codec/jpeg_decoder.hpp"

namespace dtrain::data {
namespace {

// How the rows of one output are written.
class PlaneWriter {
 public:
  PlaneWriter(const Augment& options, const nn::Shape& shape, float* out) : shape_(shape), out_(out) {
    const bool plain = changes_pixels(options);
    for (std::size_t c = 0; c < 3; ++c) {
      mean_[c] = plain ? 0.0f : options.mean[c];
      std_[c] = plain ? 1.0f : options.std[c];
    }
  }

  void write(int y, const std::uint8_t* rgbx) const {
    for (int c = 0; c < shape_.c; ++c) {
      const auto k = static_cast<std::size_t>(c);
      float* __restrict row = out_ + (std::ptrdiff_t{c} * shape_.h + y) * shape_.w;
      const float mean = mean_[k], std = std_[k];
      const int shift = 8 * c;
      for (int x = 0; x < shape_.w; ++x) {
        std::int32_t pixel;
        std::memcpy(&pixel, rgbx + std::ptrdiff_t{x} * kPixelBytes, sizeof pixel);
        row[x] = (static_cast<float>(pixel >> shift & 255) - mean) / std;
      }
    }
  }

 private:
  nn::Shape shape_;
  float* out_;
  float mean_[3], std_[3];
};

// The same as bytes, `stride` of them from row to row.
class ByteWriter {
 public:
  ByteWriter(const nn::Shape& shape, std::ptrdiff_t stride, std::uint8_t* out)
      : shape_(shape), stride_(stride), out_(out) {}

  void write(int y, const std::uint8_t* rgbx) const {
    std::uint8_t* __restrict to = out_ + y * stride_;
    for (int x = 0; x < shape_.w; ++x, rgbx += kPixelBytes) {
      for (int c = 0; c < shape_.c; ++c) *to++ = rgbx[c];
    }
  }

 private:
  nn::Shape shape_;
  std::ptrdiff_t stride_;
  std::uint8_t* out_;
};

struct WindowScratch {
  ResampleScratch resample;
  std::vector<std::uint8_t> row, grey;
};

// One a thread: no memory is taken in a steady epoch.
WindowScratch& this_threads_scratch() {
  thread_local WindowScratch scratch;
  return scratch;
}

// Beyond a reduction to a half, two pixels no longer stand for what lies between them.
Filter filter_for(const Span& span, int outputs) {
  return span.extent > 2.0 * outputs ? Filter::smooth : Filter::bilinear;
}

void plan_taps(const SourceWindow& window, const nn::Shape& shape, std::optional<Filter> filter,
               ResampleScratch& scratch) {
  make_taps(window.x, shape.w, filter.value_or(filter_for(window.x, shape.w)), window.mirror, scratch.across);
  make_taps(window.y, shape.h, filter.value_or(filter_for(window.y, shape.h)), false, scratch.down);
}

Span reduced(const Span& span, int scale, int length) {
  const double by = scale;
  return {span.from / by, span.extent / by, static_cast<int>(std::floor(span.low / by)),
          std::min(at_scale(length, scale), static_cast<int>(std::ceil(span.high / by)))};
}

// The largest reduction that leaves the window no smaller than the output.
int scale_for(const SourceWindow& window, const nn::Shape& shape) {
  for (const int scale : {8, 4, 2}) {
    if (window.y.extent >= scale * shape.h && window.x.extent >= scale * shape.w) return scale;
  }
  return 1;
}

// The taps count columns from the first that the decoder gives.
void move_taps(Taps& taps, int by) {
  for (int& first : taps.first) first -= by;
}

// take(y, pixels) gets the rows of the window as shape.h x shape.w pixels. nullopt: the filter that fits each side.
template <typename Take>
void decode_window(JpegDecoder& decoder, SourceWindow window, const nn::Shape& shape, std::optional<Filter> filter,
                   const Take& take) {
  const int scale = scale_for(window, shape);
  window.y = reduced(window.y, scale, decoder.h());
  window.x = reduced(window.x, scale, decoder.w());
  WindowScratch& scratch = this_threads_scratch();
  ResampleScratch& resample = scratch.resample;
  auto &row = scratch.row, &grey = scratch.grey;
  plan_taps(window, shape, filter, resample);
  const Taps& down = resample.down;
  decoder.begin(shape.c == 1 ? JpegPixels::grey : JpegPixels::rgbx,
                {scale, down.begin, down.end, resample.across.begin, resample.across.end});
  move_taps(resample.across, decoder.left());
  const auto columns = static_cast<std::size_t>(decoder.columns());
  row.resize((columns + kRowSlack) * kPixelBytes);
  grey.resize(shape.c == 1 ? columns : 0);
  const auto next_row = [&] {
    decoder.next_row(shape.c == 1 ? grey.data() : row.data());
    if (shape.c == 1) to_rgbx(grey.data(), 1, decoder.columns(), row.data());
    return row.data();
  };
  resample_rows(resample, next_row, take);
}

// False: the JPEG has to be decoded as a whole, since it is in inks or EXIF turns it.
bool open_jpeg(JpegDecoder& decoder, ByteView jpeg) {
  if (exif_orientation(jpeg) != 1) return false;
  decoder.open(jpeg);
  if (decoder.has_inks()) return false;
  check_shape({3, static_cast<unsigned>(decoder.h()), static_cast<unsigned>(decoder.w())}, jpeg, "JPEG");
  return true;
}

template <typename Writer>
bool write_window(ByteView jpeg, const Augment& options, const SampleKey& key, const nn::Shape& shape,
                  const Writer& writer) {
  JpegDecoder& decoder = this_threads_jpeg_decoder();
  if (!only_crops(options) || !open_jpeg(decoder, jpeg)) return false;
  const auto window = draw_source_window(decoder.h(), decoder.w(), options, key, shape);
  if (!window) return false;
  decode_window(decoder, *window, shape, std::nullopt,
                [&](int y, const std::uint8_t* pixels) { writer.write(y, pixels); });
  decoder.close(false);
  return true;
}

template <typename Writer>
void write_window(const Image& image, const SourceWindow& window, const nn::Shape& shape, const Writer& writer) {
  WindowScratch& scratch = this_threads_scratch();
  ResampleScratch& resample = scratch.resample;
  auto& row = scratch.row;
  plan_taps(window, shape, std::nullopt, resample);
  row.resize((static_cast<std::size_t>(image.w) + kRowSlack) * kPixelBytes);
  const Taps& across = resample.across;
  const std::ptrdiff_t row_bytes = std::ptrdiff_t{image.w} * image.c;
  const std::uint8_t* from =
      image.pixels.data() + resample.down.begin * row_bytes + std::ptrdiff_t{across.begin} * image.c;
  const auto next_row = [&] {
    to_rgbx(from, image.c, across.end - across.begin, row.data() + std::ptrdiff_t{across.begin} * kPixelBytes);
    from += row_bytes;
    return row.data();
  };
  resample_rows(resample, next_row, [&](int y, const std::uint8_t* pixels) { writer.write(y, pixels); });
}

}  // namespace

void fill_from_image(const Image& image, const SourceWindow& window, const Augment& options, const nn::Shape& shape,
                     float* out) {
  write_window(image, window, shape, PlaneWriter(options, shape, out));
}

bool bytes_from_image(const Image& image, const Augment& options, const SampleKey& key, const nn::Shape& shape,
                      std::ptrdiff_t stride, std::uint8_t* out) {
  const auto window = draw_source_window(image.h, image.w, options, key, shape);
  if (window) write_window(image, *window, shape, ByteWriter(shape, stride, out));
  return window.has_value();
}

bool fill_from_jpeg(ByteView jpeg, const Augment& options, const SampleKey& key, const nn::Shape& shape, float* out) {
  return write_window(jpeg, options, key, shape, PlaneWriter(options, shape, out));
}

bool bytes_from_jpeg(ByteView jpeg, const Augment& options, const SampleKey& key, const nn::Shape& shape,
                     std::ptrdiff_t stride, std::uint8_t* out) {
  return write_window(jpeg, options, key, shape, ByteWriter(shape, stride, out));
}

std::optional<Image> shrunk_jpeg(ByteView jpeg, int shorter_edge) {
  JpegDecoder& decoder = this_threads_jpeg_decoder();
  if (!open_jpeg(decoder, jpeg) || std::min(decoder.h(), decoder.w()) <= shorter_edge) return std::nullopt;
  const Sides sides = with_shorter_edge(decoder.h(), decoder.w(), shorter_edge);
  const SourceWindow whole{{0, static_cast<double>(decoder.h()), 0, decoder.h()},
                           {0, static_cast<double>(decoder.w()), 0, decoder.w()}};
  const int channels = decoder.is_grey() ? 1 : 3;
  Image image{channels, sides.h, sides.w, {}};
  image.pixels.resize(static_cast<std::size_t>(channels) * static_cast<std::size_t>(sides.h) *
                      static_cast<std::size_t>(sides.w));
  std::uint8_t* out = image.pixels.data();
  decode_window(decoder, whole, {channels, sides.h, sides.w}, Filter::smooth, [&](int, const std::uint8_t* pixels) {
    for (int x = 0; x < sides.w; ++x, pixels += kPixelBytes) {
      *out++ = pixels[0];
      if (channels == 1) continue;
      *out++ = pixels[1];
      *out++ = pixels[2];
    }
  });
  decoder.close(true);
  return image;
}

}  // namespace dtrain::data
