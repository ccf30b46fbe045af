// No header of the standard library with code in it: see kernel_vector.hpp.
#include "tile_convolution.hpp"

#include "tile_registers.hpp"

namespace dtrain::backend::cpu {
namespace {

constexpr int kTileWeights = kTile * kTileInner;     // weights that fill one tile
constexpr int kStepWeights = 2 * kTileWeights;       // weights from 32 channels of the operand to 32 of the result
constexpr int kBlockPixels = 2 * kTile;              // pixels of the result that are computed together
constexpr std::int64_t kLargeWeights = 1024 * 1024;  // bytes of a layer's weights that leave the second cache no room

// One position of the filter: from a result's pixel in its phase, how far its pixel of the operand is.
struct Tap {
  int position = 0;
  std::int64_t pixels = 0;
};

// Results of the pixels (y + step * r, x + step * c).
struct Phase {
  int y = 0, x = 0, step = 1;
  int taps = 0;
  Tap tap[kTilePositions] = {};
};

// Every pixel (y, x) of the padded source meets a result in the plane of their parities.
Phase forward_phase(const TileConvolution& s) {
  Phase phase;
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 3; ++x) {
      const std::int64_t plane = (y % s.stride * s.stride + x % s.stride) * s.plane();
      phase.tap[phase.taps++] = {3 * y + x, plane + y / s.stride * s.row() + x / s.stride};
    }
  }
  return phase;
}

// Row i of the source met position y of the filter in the layer's result row (i + 1 - y) / stride, if that is whole.
// For i = stride * r + parity, steps_back() is how far this row lies below row r, counted with the row of padding on
// top.
int steps_back(int parity, int stride, int y) { return (parity + 1 - y + stride) / stride; }
bool meets(int parity, int stride, int y) { return (parity + 1 - y) % stride == 0; }

Phase by_source_phase(const TileConvolution& s, int parity_y, int parity_x) {
  Phase phase{.y = parity_y, .x = parity_x, .step = s.stride};
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 3; ++x) {
      if (!meets(parity_y, s.stride, y) || !meets(parity_x, s.stride, x)) continue;
      phase.tap[phase.taps++] = {
          3 * y + x, std::int64_t{steps_back(parity_y, s.stride, y)} * s.row() + steps_back(parity_x, s.stride, x)};
    }
  }
  return phase;
}

Phase phase_of(const TileConvolution& s, int index) {
  return s.is_forward() ? forward_phase(s) : by_source_phase(s, index / s.stride, index % s.stride);
}

void copy_pixel(const std::uint16_t* from, int channels, std::uint16_t* to) {
  for (int k = 0; k < channels; k += kTileInner) _mm512_storeu_si512(to + k, _mm512_loadu_si512(from + k));
}
void clear_pixels(std::int64_t numbers, std::uint16_t* to) {
  for (std::int64_t k = 0; k < numbers; k += kTileInner) _mm512_storeu_si512(to + k, _mm512_setzero_si512());
}

// Adds up 32 pixels and 32 channels of the result. Tiles 0 to 3 are the sums, 4 and 5 the operand's pixels, 6 and 7 the
// weights.
void multiply(const TileConvolution& s, const Phase& phase, const std::uint16_t* operand, const std::uint16_t* weights,
              float* sums) {
  const int channels = s.operand_channels();
  const long pixel_bytes = long{2} * channels;
  constexpr long kWeightsRow = kTileInner * 2, kSumsRow = kTileColumns * 4;
  const std::int64_t position_weights = std::int64_t{channels / kTileInner} * kStepWeights;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int k = 0; k < phase.taps; ++k) {
    const std::uint16_t* const first = operand + phase.tap[k].pixels * channels;
    const std::uint16_t* const second = first + std::int64_t{kTile} * channels;
    const std::uint16_t* factors = weights + phase.tap[k].position * position_weights;
    for (int channel = 0; channel < channels; channel += kTileInner, factors += kStepWeights) {
      _tile_loadd(6, factors, kWeightsRow);
      _tile_loadd(4, first + channel, pixel_bytes);
      _tile_loadd(7, factors + kTileWeights, kWeightsRow);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, second + channel, pixel_bytes);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  float* const lower = sums + kTile * kTileColumns;
  _tile_stored(0, sums, kSumsRow);
  _tile_stored(1, sums + kTile, kSumsRow);
  _tile_stored(2, lower, kSumsRow);
  _tile_stored(3, lower + kTile, kSumsRow);
}

// Where the pixels of a phase lie in the result; those of the padding lie nowhere.
class ResultPixels {
 public:
  ResultPixels(const TileConvolution& s, const Phase& phase)
      : s_(s), phase_(phase), h_(s.is_forward() ? s.strided_h() : s.h), w_(s.is_forward() ? s.strided_w() : s.w) {}

  void go_to(std::int64_t pixel) {
    sample_ = pixel / s_.slot();
    const int within = static_cast<int>(pixel % s_.slot());
    at_ = {s_.row(), within / s_.row(), within % s_.row()};
  }
  void next() {
    at_.next();
    if (at_.y <= s_.strided_h()) return;
    at_.y = 0;
    ++sample_;
  }
  // Its number in the result, or -1.
  std::int64_t place() const {
    const int y = phase_.y + phase_.step * at_.y, x = phase_.x + phase_.step * at_.x;
    return sample_ < s_.count && y < h_ && x < w_ ? (sample_ * h_ + y) * w_ + x : -1;
  }

 private:
  const TileConvolution& s_;
  const Phase& phase_;
  const int h_, w_;
  std::int64_t sample_ = 0;
  Cursor at_{1};
};

// Of the pixels from the present one on.
void write_block(const float* sums, const float* bias, int channel, int channels, ResultPixels pixels,
                 std::uint16_t* result) {
  const __m512 low_bias = bias ? _mm512_loadu_ps(bias + channel) : _mm512_setzero_ps();
  const __m512 high_bias = bias ? _mm512_loadu_ps(bias + channel + kTile) : _mm512_setzero_ps();
  for (int k = 0; k < kBlockPixels; ++k, sums += kTileColumns, pixels.next()) {
    const std::int64_t place = pixels.place();
    if (place < 0) continue;
    const __m512 low = _mm512_add_ps(_mm512_load_ps(sums), low_bias);
    const __m512 high = _mm512_add_ps(_mm512_load_ps(sums + kTile), high_bias);
    _mm512_storeu_si512(result + place * channels + channel, (__m512i)_mm512_cvtne2ps_pbh(high, low));
  }
}

void convolve_phase(const TileConvolution& s, const Phase& phase, const std::uint16_t* padded,
                    const std::uint16_t* packed, const float* bias, std::uint16_t* result) {
  const std::int64_t pixels = std::int64_t{s.count} * s.slot();
  const int channels = s.result_channels();
  const std::int64_t panel = std::int64_t{kTilePositions} * s.operand_channels() * kTileColumns;
  ResultPixels at(s, phase);
  alignas(64) float sums[kBlockPixels * kTileColumns];
  const auto block = [&](std::int64_t pixel, int channel) {
    multiply(s, phase, padded + pixel * s.operand_channels(), packed + channel / kTileColumns * panel, sums);
    at.go_to(pixel);
    write_block(sums, bias, channel, channels, at, result);
  };
  // Either the weights of all channels stay in the second cache, or the pixels do.
  if (2 * s.weights_size() < kLargeWeights) {
    for (std::int64_t pixel = 0; pixel < pixels; pixel += kBlockPixels) {
      for (int channel = 0; channel < channels; channel += kTileColumns) block(pixel, channel);
    }
  } else {
    for (int channel = 0; channel < channels; channel += kTileColumns) {
      for (std::int64_t pixel = 0; pixel < pixels; pixel += kBlockPixels) block(pixel, channel);
    }
  }
}

}  // namespace

// To [planes][samples][rows][columns][channels], where each row and each sample begins with zeros; behind the last
// sample of a plane there are zeros too.
void pad_operand(const TileConvolution& s, const std::uint16_t* operand, std::uint16_t* padded) {
  const int channels = s.operand_channels();
  const int h = s.is_forward() ? s.h : s.strided_h(), w = s.is_forward() ? s.w : s.strided_w();
  const int step = s.is_forward() ? s.stride : 1;
  for (int plane = 0; plane < s.planes(); ++plane) {
    std::uint16_t* to = padded + plane * s.plane() * channels;
    for (int sample = 0; sample < s.count; ++sample) {
      const std::uint16_t* const from = operand + std::int64_t{sample} * h * w * channels;
      for (int row = 0; row <= s.strided_h(); ++row) {
        const int y = row * step + plane / step - 1;
        for (int column = 0; column < s.row(); ++column, to += channels) {
          const int x = column * step + plane % step - 1;
          if (y >= 0 && y < h && x >= 0 && x < w) {
            copy_pixel(from + (std::int64_t{y} * w + x) * channels, channels, to);
          } else {
            clear_pixels(channels, to);
          }
        }
      }
    }
    clear_pixels((s.plane() - std::int64_t{s.count} * s.slot()) * channels, to);
  }
}

// To [result / 32][9][operand / 32][2][16 pairs][16][2].
void pack_tile_weights(const TileConvolution& s, const float* weights, std::uint16_t* packed) {
  // Numbers between neighbouring channels of the operand, and of the result.
  const std::int64_t inner = s.is_forward() ? kTilePositions : std::int64_t{s.in} * kTilePositions;
  const int column = s.is_forward() ? s.in * kTilePositions : kTilePositions;
  const __m512i columns = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                             _mm512_set1_epi32(column));
  const auto sixteen = [&](const float* first) {
    return (__m256i)_mm512_cvtneps_pbh(_mm512_i32gather_ps(columns, first, sizeof(float)));
  };
  for (int result = 0; result < s.result_channels(); result += kTile) {
    std::uint16_t* const panel =
        packed + std::int64_t{result / kTileColumns} * kTilePositions * s.operand_channels() * kTileColumns +
        result / kTile % 2 * kTileWeights;
    for (int operand = 0; operand < s.operand_channels(); operand += 2) {
      for (int position = 0; position < kTilePositions; ++position) {
        const float* const first = weights + std::int64_t{result} * column + operand * inner + position;
        std::uint16_t* const step =
            panel +
            (std::int64_t{position} * (s.operand_channels() / kTileInner) + operand / kTileInner) * kStepWeights;
        _mm512_storeu_si512(step + operand % kTileInner * kTile, pair_of(sixteen(first), sixteen(first + inner)));
      }
    }
  }
}

void convolve_tiles(const TileConvolution& s, const std::uint16_t* padded, const std::uint16_t* packed,
                    const float* bias, std::uint16_t* result) {
  const TileConfig config;
  _tile_loadconfig(&config);
  for (int index = 0; index < s.phases(); ++index) {
    convolve_phase(s, phase_of(s, index), padded, packed, bias, result);
  }
  _tile_release();
}

}  // namespace dtrain::backend::cpu
